"""metrics.k8s.io as clients see it."""

import pytest

from kcm_cli.rest.errors import MethodNotSupported, NotFound
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.usage.api import MetricsApi
from tests.unit.sandbox.nodes.world import World, resource

POD_METRICS = resource("pods", "metrics.k8s.io", "v1beta1")
NODE_METRICS = resource("nodes", "metrics.k8s.io", "v1beta1", namespaced=False)


async def items(world: World, kind, **query: str) -> list[dict]:
    namespace = "default" if kind.namespaced else ""
    return await world.items(kind, namespace, **query)


def test_pods_and_nodes(play):
    async def run(world: World) -> None:
        world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
        await world.pod("a", {"nodeName": "node-1", "labels": {"app": "a"}}, cpu="250m", memory="64Mi")
        await world.pod("b", {"nodeName": "node-1"})
        await world.wait()
        (one,) = await items(world, POD_METRICS, label_selector="app=a")
        assert one["metadata"]["name"] == "a" and one["metadata"]["namespace"] == "default"
        assert one["window"] == "10s"
        assert one["containers"] == [{"name": "c", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}]
        assert len(await items(world, POD_METRICS)) == 2
        node = await world.get(NODE_METRICS, "node-1")
        assert node["kind"] == "NodeMetrics"
        assert node["usage"] == {"cpu": "301000000n", "memory": f"{(256 + 64 + 16) * 1024}Ki"}
        assert len(await items(world, NODE_METRICS)) == 3

    play(run)


def test_what_it_refuses(play):
    async def run(world: World) -> None:
        with pytest.raises(NotFound):
            await world.get(POD_METRICS, "a")
        world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
        with pytest.raises(NotFound, match='pods.metrics.k8s.io "a" not found'):
            await world.get(POD_METRICS, "a")
        with pytest.raises(MethodNotSupported):
            await world.create(POD_METRICS, {"metadata": {"name": "a"}})

    play(run)


def test_it_is_discovered(play):
    async def run(world: World) -> None:
        world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
        assert b"metrics.k8s.io/v1beta1" in await world.client.call(Request("GET", "/apis"))
        listed = await world.client.call(Request("GET", "/apis/metrics.k8s.io/v1beta1"))
        assert b"PodMetrics" in listed and b"NodeMetrics" in listed

    play(run)
