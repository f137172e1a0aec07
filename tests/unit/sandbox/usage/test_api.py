"""metrics.k8s.io as clients see it."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.rest.errors import MethodNotSupported, NotFound
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import RequestInfo
from kcm_cli.sandbox.nodes import usage
from kcm_cli.sandbox.nodes.usage import Holder
from kcm_cli.sandbox.usage.api import MetricsApi
from kcm_cli.sandbox.views import PODS
from tests.kit.world import World, resource

POD_METRICS = resource("pods", "metrics.k8s.io", "v1beta1")
NODE_METRICS = resource("nodes", "metrics.k8s.io", "v1beta1", namespaced=False)


async def items(world: World, kind, **query: str) -> list[dict]:
    namespace = "default" if kind.namespaced else ""
    return await world.items(kind, namespace, **query)


async def test_pods_and_nodes(world: World):
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


async def test_tables_and_fields(world: World):
    world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
    two = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}
    await world.pod("a", two, cpu="250m", memory="64Mi")
    await world.pod("b")
    await world.wait()
    (one,) = await items(world, POD_METRICS, field_selector="metadata.name=b")
    assert one["metadata"]["name"] == "b"
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
    answer = codec.decode(await world.client.call(Request("GET", path, headers=headers)), dict)
    assert [column["name"] for column in answer["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert answer["rows"][0]["cells"] == ["a", "500m", "128Mi", "10s"]
    assert answer["rows"][0]["object"]["kind"] == "PodMetrics"


@pytest.mark.real_time
async def test_the_pods_are_read_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a millisecond later. One pod cannot be read, and has no metrics."""
    now, others, looked, most = 0.0, 0, 0, 0

    def looks(_: str, holders: Sequence[Holder]) -> None:
        nonlocal looked
        looked += 1

    def later() -> float:
        nonlocal now
        now += 0.001
        return now

    async def other_work() -> None:
        nonlocal others, looked, most
        while True:
            others, most, looked = others + 1, max(most, looked), 0
            await asyncio.sleep(0)

    store, statuses = Store(), [{"name": "c", "state": {"running": {}}}]
    for number in range(200):
        spec = {"nodeName": "n", "containers": [{"name": "c"}] if number else 5}
        meta = {"name": f"p{number}", "namespace": "d", "uid": str(number)}
        status = {"phase": "Running", "containerStatuses": statuses}
        store.create(PODS.gvr, "d", f"p{number}", {"metadata": meta, "spec": spec, "status": status})
    monkeypatch.setattr(time, "perf_counter", later)
    monkeypatch.setattr(usage, "_holder_of", looks)
    working = asyncio.create_task(other_work())
    info = RequestInfo("list", "/", True, "metrics.k8s.io", "v1beta1", "pods", namespace="d")
    answer = await MetricsApi(store, LoopClock()).answer(info, {}, "application/json")
    working.cancel()
    assert len(codec.decode(answer.body, dict)["items"]) == 199
    assert others > 20 and 0 < most < 200, "for each pod it looks some times for annotations"


async def test_requests_that_are_refused(world: World):
    with pytest.raises(NotFound):
        await world.get(POD_METRICS, "a")
    world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
    with pytest.raises(NotFound, match='^pods "a" not found'):
        await world.get(POD_METRICS, "a")
    await world.pod("waits", {"nodeSelector": {"no": "such"}})
    with pytest.raises(NotFound, match='podmetrics.metrics.k8s.io "default/waits" not found'):
        await world.get(POD_METRICS, "waits")
    with pytest.raises(MethodNotSupported):
        await world.create(POD_METRICS, {"metadata": {"name": "a"}})


async def test_it_is_discovered(world: World):
    world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
    assert b"metrics.k8s.io/v1beta1" in await world.client.call(Request("GET", "/apis"))
    listed = await world.client.call(Request("GET", "/apis/metrics.k8s.io/v1beta1"))
    assert b"PodMetrics" in listed and b"NodeMetrics" in listed
