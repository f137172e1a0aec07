"""Writes the text of each Greeting into a ConfigMap, which is deleted with it.

On a cluster: kopf run --all-namespaces --standalone greeting_operator.py
"""

import kopf
import kubernetes

FIELD_MANAGER = "greeting-operator"


@kopf.on.create("example.com", "v1", "greetings")
@kopf.on.update("example.com", "v1", "greetings", field="spec")
def greet(spec: kopf.Spec, name: str, namespace: str, patch: kopf.Patch, **_: object) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"text": f"Hello, {spec['to']}!"},
    }
    kopf.adopt(config_map)
    # server-side apply is the same for a creation, an update, and a second attempt after a crash
    kubernetes.dynamic.DynamicClient(kubernetes.client.ApiClient()).resources.get(
        api_version="v1", kind="ConfigMap"
    ).server_side_apply(config_map, name=name, namespace=namespace, field_manager=FIELD_MANAGER)
    patch.status["greeted"] = spec["to"]
