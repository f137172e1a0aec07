"""The operator of docs/testing-operators.md: a Greeting gets a ConfigMap of its own."""

import kopf
import kubernetes


@kopf.on.create("example.com", "v1", "greetings")
def greet(spec, name, namespace, **_):
    """Make the ConfigMap; it goes with its Greeting, by the garbage collector."""
    config_map = {"metadata": {"name": name}, "data": {"text": f"Hello, {spec['to']}!"}}
    kopf.adopt(config_map)
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, config_map)
