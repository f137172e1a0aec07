"""The pytest plugin with the client libraries that operators are written with."""

import asyncio

import kr8s.asyncio
import kubernetes
import kubernetes_asyncio
import lightkube
import pytest
from kr8s.asyncio.objects import ConfigMap as Map
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from kcm_cli.testing import HostOptions, Sandbox, SandboxError

POD = {"containers": [{"name": "c", "image": "nginx"}]}
DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}, "annotations": {"sandbox.kcm.dev/ready-delay": "10m"}},
            "spec": POD,
        },
    },
}


@pytest.fixture
def api(kcm_kubeconfig):
    with kubernetes.config.new_client_from_config(config_file=kcm_kubeconfig) as client:
        yield client


def test_the_kubernetes_client_and_advancing_time(kcm_sandbox, kcm_namespace, api):
    apps, core = kubernetes.client.AppsV1Api(api), kubernetes.client.CoreV1Api(api)
    apps.create_namespaced_deployment(kcm_namespace, DEPLOYMENT)
    kcm_sandbox.wait(lambda: len(core.list_namespaced_pod(kcm_namespace).items) == 2)
    kcm_sandbox.advance(300)
    assert not apps.read_namespaced_deployment("web", kcm_namespace).status.ready_replicas
    kcm_sandbox.advance(330)
    assert apps.read_namespaced_deployment("web", kcm_namespace).status.ready_replicas == 2


def test_a_failed_node_is_noticed(kcm_sandbox, api):
    core = kubernetes.client.CoreV1Api(api)
    name = kcm_sandbox.add_node(capacity="cpu=2")

    def ready():
        conditions = core.read_node(name).status.conditions or []
        return next((c.status for c in conditions if c.type == "Ready"), None)

    kcm_sandbox.wait(lambda: ready() == "True")
    assert core.read_node(name).status.capacity["cpu"] == "2"
    kcm_sandbox.fail_node(name)
    kcm_sandbox.advance(90)
    assert ready() == "Unknown"
    kcm_sandbox.recover_node(name)
    kcm_sandbox.advance(15)
    assert ready() == "True"
    kcm_sandbox.remove_node(name)


def test_invalid_flags_of_the_controllers_fail_the_start():
    with pytest.raises(SandboxError, match="no-such-flag"):
        Sandbox(HostOptions(nodes=0, flags=("--no-such-flag",))).start()


def test_namespaces_are_unique(kcm_namespace, api):
    assert kubernetes.client.CoreV1Api(api).list_namespaced_pod(kcm_namespace).items == []


def test_lightkube(kcm_namespace, kcm_kubeconfig):
    config = lightkube.KubeConfig.from_file(kcm_kubeconfig)
    with lightkube.Client(config=config, field_manager="test") as client:
        client.apply(ConfigMap(metadata=ObjectMeta(name="a", namespace=kcm_namespace), data={"k": "v"}))
        assert client.get(ConfigMap, "a", namespace=kcm_namespace).data == {"k": "v"}


@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")
@pytest.mark.filterwarnings(
    "ignore:Implicitly cleaning up:ResourceWarning"
)  # kr8s leaves files open: Python 3.14 says so
def test_kr8s(kcm_namespace, kcm_kubeconfig):
    async def main():
        api = await kr8s.asyncio.api(kubeconfig=kcm_kubeconfig)
        doc = {"metadata": {"name": "a", "namespace": kcm_namespace}, "data": {"k": "v"}}
        await (await Map(doc, api=api)).create()
        found = await Map.get("a", namespace=kcm_namespace, api=api)
        await api._session.aclose()  # it offers no other way
        return found.data

    assert asyncio.run(main()) == {"k": "v"}


def test_kubernetes_asyncio(kcm_sandbox, kcm_namespace, kcm_kubeconfig):
    async def main():
        configuration = kubernetes_asyncio.client.Configuration()
        await kubernetes_asyncio.config.load_kube_config(kcm_kubeconfig, client_configuration=configuration)
        async with kubernetes_asyncio.client.ApiClient(configuration) as client:
            core = kubernetes_asyncio.client.CoreV1Api(client)
            await core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": POD})
            await kcm_sandbox.advance_async(5)
            return (await core.read_namespaced_pod("a", kcm_namespace)).status.phase

    assert asyncio.run(main()) == "Running"
