"""The example of docs/testing-operators.md, as it stands there: a kopf operator with a resource of its own."""

import gc
from pathlib import Path

import kubernetes
import pytest
from kopf.testing import KopfRunner
from kubernetes.client.exceptions import ApiException

OPERATOR = Path(__file__).with_name("greeting_operator.py")
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"to": {"type": "string"}}}}}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Greeting", "plural": "greetings"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


@pytest.fixture
def api(kcm_kubeconfig):
    kubernetes.config.load_kube_config(config_file=kcm_kubeconfig)
    return kubernetes.client.ApiClient()


@pytest.fixture
def greetings(api, kcm_sandbox):
    definitions = kubernetes.client.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(CRD)
    custom = kubernetes.client.CustomObjectsApi(api)

    def served():
        try:
            return custom.list_cluster_custom_object("example.com", "v1", "greetings")
        except ApiException:
            return None

    kcm_sandbox.wait(served)
    yield custom
    definitions.delete_custom_resource_definition("greetings.example.com")


@pytest.mark.filterwarnings("ignore")
def test_a_greeting_is_said_and_forgotten(kcm_sandbox, kcm_namespace, greetings, api):
    core = kubernetes.client.CoreV1Api(api)

    def texts():
        maps = core.list_namespaced_config_map(kcm_namespace).items
        return [m.data["text"] for m in maps if m.metadata.name != "kube-root-ca.crt"]

    where = ("example.com", "v1", kcm_namespace, "greetings")
    with KopfRunner(["run", "-n", kcm_namespace, str(OPERATOR)], timeout=30) as operator:
        greeting = {
            "apiVersion": "example.com/v1",
            "kind": "Greeting",
            "metadata": {"name": "a"},
            "spec": {"to": "you"},
        }
        greetings.create_namespaced_custom_object(*where, greeting)
        kcm_sandbox.wait(lambda: texts() == ["Hello, you!"])

        greetings.delete_namespaced_custom_object(*where, "a")
        kcm_sandbox.wait(lambda: texts() == [])  # the garbage collector is there: nobody else deletes the ConfigMap
    assert operator.exception is None
    del operator
    gc.collect()  # connections that kopf leaves open are told of here, where warnings are let be, not in another test
