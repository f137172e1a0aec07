"""The controller in a whole sandbox, on virtual time."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.api.core import PODS as CACHED
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.pod_garbage_collector.config import PodGarbageCollectorConfig
from kcm_cli.controllers.pod_garbage_collector.controller import CHUNK, PARALLEL, PodGarbageCollector
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Request, Response, Transport
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.workqueue import WorkQueue
from kcm_cli.sandbox.nodes import commands
from tests.kit.controlling import adds, controllers, metric
from tests.kit.faults import Around, Held, Meanwhile, Noting, Refusing, Rewriting, refusal
from tests.kit.world import NODES, PODS, World

HELD = {"metadata": {"finalizers": ["example.com/wait"]}}


def running(world: World, transport: Transport | None = None, threshold: int = 12500, **options: Any) -> Any:
    config = PodGarbageCollectorConfig(terminated_pod_threshold=threshold)
    return controllers(world, config, names=["pod-garbage-collector-controller"], transport=transport, **options)


async def until_gone(world: World, name: str, seconds: int) -> int | None:
    for second in range(seconds):
        if await world.is_deleted(name):
            return second
        await world.wait(1)
    return None


async def test_pods_of_a_deleted_node(world: World):
    """They are failed, say why, and go after the quarantine; those of other nodes stay."""
    for name in ("p", "held", "other"):
        await world.pod(name)
    await world.wait(10)
    for name in ("p", "held"):
        await world.patch(PODS, name, HELD)
    node, metrics = await world.node_of("p"), Registry()
    async with running(world, metrics=metrics):
        if await world.node_of("other") == node:
            await world.delete(PODS, "other", grace_s=0)
            await world.pod("other")
        await world.delete(NODES, node)
        await world.wait(35)
        assert (await world.status("p"))["phase"] == "Running"
        assert adds(metrics, "orphaned_pods_nodes") == 0
        await world.wait(30)
        assert adds(metrics, "orphaned_pods_nodes") == 1
        status = await world.status("p")
        assert status["phase"] == "Failed"
        (condition,) = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
        assert (condition["reason"], condition["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
        assert "deletionTimestamp" in (await world.get(PODS, "p"))["metadata"]
        await world.patch(PODS, "p", {"metadata": {"finalizers": None}})
        await world.wait(1)
        assert await world.is_deleted("p")
        assert (await world.status("other"))["phase"] == "Running"


async def test_a_node_that_comes_back_in_time_keeps_its_pods(world: World):
    await world.pod("p")
    await world.wait(10)
    node = await world.node_of("p")
    async with running(world):
        await world.wait(5)
        await world.delete(NODES, node)
        await world.wait(25)
        await commands.add(world.client, node)
        await world.wait(100)
        assert not await world.is_deleted("p")


class _Slow(Around):
    """A deletion of a pod is sent only after five minutes."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server.transport())
        self._clock = world.clock

    async def send(self, request: Request) -> Response:
        if request.method == "DELETE":
            await self._clock.sleep(300)
        return await self._inner.send(request)


async def test_pods_of_a_node_that_is_back_before_its_turn_are_kept(world: World):
    for name in ("p", "q"):
        await world.pod(name, {"nodeName": f"node-{'pq'.index(name) + 1}"})
    await world.wait(10)
    async with running(world, _Slow(world)):
        for node in ("node-1", "node-2"):
            await world.delete(NODES, node)
        await world.wait(100)
        for node in ("node-1", "node-2"):
            await commands.add(world.client, node)
            await world.pod(f"new-{node}", {"nodeName": node})
        await world.wait(1000)
        assert [await world.is_deleted(name) for name in ("p", "q")] == [True, True]
        assert [await world.is_deleted(f"new-{node}") for node in ("node-1", "node-2")] == [False, False]


@pytest.mark.parametrize("status", [200, 500])
async def test_a_node_counts_as_deleted_only_if_the_server_says_so(world: World, status):
    await world.pod("p")
    await world.wait(10)
    node = await world.node_of("p")
    wrong, asked = [True], []

    def answer(request: Request) -> Response | None:
        if wrong[0] and request.method == "GET" and request.path == f"/api/v1/nodes/{node}":
            asked.append(request.path)
            body = b'{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}'
            good = Response(200, {"content-type": "application/json"}, body)
            return good if status == 200 else refusal(500, "InternalError")
        return None

    async with running(world, Rewriting(world.server.transport(), answer=answer)):
        await world.delete(NODES, node)
        await world.wait(150)
        assert asked
        assert not await world.is_deleted("p")
        wrong[0] = False
        await world.wait(45)
        assert await world.is_deleted("p")


async def test_finished_pods_beyond_the_threshold(world: World):
    for number in range(4):
        await world.pod(f"p{number}", {"restartPolicy": "Never"}, run_time="1s")
        await world.wait(2)
    await world.wait(20)
    async with running(world, threshold=2):
        await world.wait(30)
        assert [await world.is_deleted(f"p{number}") for number in range(4)] == [True, True, False, False]


async def test_pods_that_finalizers_keep_are_deleted_once(world: World):
    """Each again and again would be thousands of requests, every 20 seconds, where an operator is slow to let go."""
    for name in ("finished", "p"):
        await world.pod(name, {"restartPolicy": "Never"}, run_time="1s" if name == "finished" else "1h")
        await world.patch(PODS, name, HELD)
    await world.pod("unbound", {"schedulerName": "nobody"})
    await world.patch(PODS, "unbound", HELD)
    await world.wait(20)
    await world.pod("last", {"restartPolicy": "Never", "nodeName": await world.node_of("finished")}, run_time="1s")
    await world.wait(20)
    assert await world.node_of("p") != await world.node_of("finished")
    transport = Noting(world.server.transport())
    async with running(world, transport, threshold=1):
        await world.delete(PODS, "unbound")
        await world.delete(NODES, await world.node_of("p"))
        await world.wait(300)
        names = ("finished", "p", "unbound")
        assert sorted(transport.paths("DELETE")) == [f"/api/v1/namespaces/default/pods/{name}" for name in names]
        assert [(await world.status(name))["phase"] for name in names] == ["Succeeded", "Failed", "Failed"]
        for name in names:
            await world.patch(PODS, name, {"metadata": {"finalizers": None}})
        await world.wait(30)
        assert [await world.is_deleted(name) for name in (*names, "last")] == [True, True, True, False]


@pytest.mark.parametrize("threshold", [0, -1])
async def test_without_a_threshold_finished_pods_are_kept(world: World, threshold):
    await world.pod("p", {"restartPolicy": "Never"}, run_time="1s")
    await world.wait(20)
    async with running(world, threshold=threshold):
        await world.wait(60)
        assert (await world.status("p"))["phase"] == "Succeeded"


async def test_a_finished_pod_of_a_deleted_node_keeps_its_phase(world: World):
    await world.pod("p", {"restartPolicy": "Never"}, run_time="1s")
    await world.wait(20)
    await world.patch(PODS, "p", HELD)
    before = await world.status("p")
    async with running(world):
        await world.delete(NODES, await world.node_of("p"))
        await world.wait(90)
        assert "deletionTimestamp" in (await world.get(PODS, "p"))["metadata"]
        assert await world.status("p") == before


async def test_a_pod_without_a_node_is_not_one_of_a_deleted_node(world: World):
    metrics = Registry()
    await world.pod("p", {"schedulerName": "nobody"})
    async with running(world, metrics=metrics):
        await world.wait(120)
    assert adds(metrics, "orphaned_pods_nodes") == 0
    assert not await world.is_deleted("p")


async def test_a_pod_that_replaces_a_finished_one_is_kept(world: World):
    """It is created between the look at the cache and the deletion, which has the uid of the first one."""
    for name in ("p", "q"):
        await world.pod(name, {"restartPolicy": "Never"}, run_time="1s")
        await world.wait(2)
    await world.wait(20)

    async def replace() -> None:
        await world.delete(PODS, "p", grace_s=0)
        await world.pod("p")

    transport = Meanwhile(world.server.transport(), "DELETE", "/pods/p", replace)
    async with running(world, transport, threshold=1):
        await world.wait(60)
    assert transport.happened
    assert "deletionTimestamp" not in (await world.get(PODS, "p"))["metadata"]


async def test_many_finished_pods_are_deleted_in_batches(world: World):
    """The oldest beyond the threshold go; others run meanwhile, and not all requests are sent at once."""
    pods = 3 * CHUNK
    under_way, most, turns = 0, 0, 0

    class Client:
        async def delete(self, kind: Any, namespace: str, name: str, **options: Any) -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            deleted.append(name)

    deleted: list[str] = []
    informers = Informers(None, world.clock, random.Random(1))  # type: ignore[arg-type]  # nothing is asked for
    for number in range(pods):
        at = number * 7 % pods  # not in the order of their age
        stamp = f"2026-01-01T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"
        metadata = {"namespace": "ns", "name": f"p{at:05}", "uid": str(at), "creationTimestamp": stamp}
        doc = {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}}
        informers.get(CACHED).store.put(CACHED.decode(codec.encode(doc)))
    context: Any = SimpleNamespace(
        name="c",
        clock=world.clock,
        client=Client(),
        cache=informers.get,
        config=lambda kind: PodGarbageCollectorConfig(terminated_pod_threshold=100),
        queue=lambda name: WorkQueue(name, world.clock),
        gates=SimpleNamespace(enabled=lambda name: True),
        metrics=Registry(),
        causes=None,
    )
    sweep = asyncio.create_task(PodGarbageCollector(context).sweep())
    while not most:
        await asyncio.sleep(0)
        turns += 1
    await sweep
    assert sorted(deleted) == [f"p{number:05}" for number in range(pods - 100)]
    assert most == PARALLEL
    assert turns > pods // CHUNK


async def test_a_terminating_pod_that_never_got_a_node(world: World):
    await world.pod("p", {"schedulerName": "nobody"})
    await world.patch(PODS, "p", HELD)
    await world.wait(1)
    async with running(world):
        await world.delete(PODS, "p")
        await world.wait(25)
        assert (await world.status("p"))["phase"] == "Failed"
        await world.patch(PODS, "p", {"metadata": {"finalizers": None}})
        assert await until_gone(world, "p", 30) is not None


async def test_terminating_pods_of_a_node_that_is_out_of_service(world: World):
    await world.pod("p", {"terminationGracePeriodSeconds": 3600})
    await world.wait(10)
    node = await world.node_of("p")
    await commands.fail(world.client, node)
    conditions = [{"type": "Ready", "status": "Unknown"}]
    body = {"status": {"conditions": conditions}}
    await world.client.patch(NODES, "", node, body, content_type=MERGE, subresource="status")
    async with running(world):
        await world.delete(PODS, "p")
        await world.wait(60)
        assert not await world.is_deleted("p")
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        await world.patch(NODES, node, {"spec": {"taints": [taint]}})
        await world.wait(25)
        assert await world.is_deleted("p")


@pytest.mark.parametrize("readable", [True, False])
async def test_pods_stay_if_the_cache_shows_a_taint_that_the_node_no_longer_has(world: World, readable):
    """Also if the node cannot be read."""
    await world.pod("p", {"terminationGracePeriodSeconds": 3600})
    await world.wait(10)
    node = await world.node_of("p")
    await commands.fail(world.client, node)
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    await world.client.patch(NODES, "", node, unknown, content_type=MERGE, subresource="status")
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    await world.patch(NODES, node, {"spec": {"taints": [taint]}})
    wrong, path = [not readable], f"/api/v1/nodes/{node}"
    refused = Refusing(world.server.transport(), lambda r: wrong[0] and r.method == "GET" and r.path == path)
    held = Held(refused, world.clock, "/api/v1/nodes")
    async with running(world, held):
        await world.wait(5)
        held.hold()
        if readable:
            await world.patch(NODES, node, {"spec": {"taints": []}})
        await world.delete(PODS, "p")
        await world.wait(60)
        assert not await world.is_deleted("p")
        wrong[0] = False
        await world.patch(NODES, node, {"spec": {"taints": [taint]}})
        await world.wait(25)
        assert await world.is_deleted("p")


async def test_an_already_deleted_pod_counts_as_a_failed_deletion(world: World):
    """As upstream counts it."""

    def answer(request: Request) -> Response | None:
        return refusal(404, "NotFound") if request.method == "DELETE" else None

    metrics = Registry()
    await world.pod("q", {"schedulerName": "nobody"})
    await world.patch(PODS, "q", HELD)
    await world.delete(PODS, "q")
    transport = Rewriting(world.server.transport(), answer=answer)
    async with running(world, transport, metrics=metrics):
        await world.wait(5)
    counted = {"namespace": "default", "reason": "unscheduled"}
    assert metric(metrics, "pod_gc_collector_force_delete_pods_total", **counted) == 1
    assert metric(metrics, "pod_gc_collector_force_delete_pod_errors_total", **counted) == 1


async def test_a_failed_deletion_does_not_affect_other_pods(world: World):
    for number in range(2):
        await world.pod(f"p{number}", {"restartPolicy": "Never"}, run_time="1s")
    await world.wait(20)
    broken = [True]
    transport = Refusing(
        world.server.transport(), lambda r: broken[0] and r.method == "DELETE" and r.path.endswith("p0")
    )
    async with running(world, transport, threshold=1):
        await world.pod("q", {"schedulerName": "nobody"})
        await world.delete(PODS, "q")
        await world.wait(30)
        assert transport.refused
        assert await world.is_deleted("q")
        assert not await world.is_deleted("p0")
        broken[0] = False
        await world.wait(21)
        assert await world.is_deleted("p0")
