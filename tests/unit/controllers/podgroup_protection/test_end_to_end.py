"""Who is in a group; and the controller in a whole sandbox, on virtual time.

The sandbox drops the field by which pods join a group, as a default API server does: answers are made to have it.
"""

import json
from typing import Any

import msgspec
import pytest

from kcm_cli.api.core import Pod
from kcm_cli.api.scheduling import POD_GROUPS
from kcm_cli.controllers.podgroup_protection.controller import FINALIZER, active_member_of
from kcm_cli.rest.transport import Around
from tests.kit.alpha import make, serve
from tests.kit.controlling import controllers
from tests.kit.faults import Held, Noting, Refusing
from tests.kit.world import PODS, World

GROUP = {"schedulingGroup": {"podGroupName": "g"}}


@pytest.mark.parametrize(
    ("spec", "phase", "expected"),
    [
        ({}, "Running", ()),
        (GROUP, "Pending", ("ns/g",)),
        (GROUP, "Running", ("ns/g",)),
        (GROUP, "Succeeded", ()),
        (GROUP, "Failed", ()),
    ],
)
def test_pods_that_keep_a_group(spec: dict[str, Any], phase: str, expected: tuple[str, ...]) -> None:
    doc = {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec, "status": {"phase": phase}}
    assert active_member_of(msgspec.convert(doc, Pod)) == expected


async def test_a_group_without_pods_is_deleted_after_retries(world: World):
    await serve(world, POD_GROUPS, status={})
    doc = {"metadata": {"name": "g", "finalizers": [FINALIZER, "example.com/other"]}, "spec": {"mine": 1}}
    await make(world, POD_GROUPS, doc)
    broken = [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "PUT")
    async with controllers(
        world,
        names=["podgroup-protection-controller"],
        gates=[("", "GenericWorkload=true")],
        transport=transport,
    ):
        await world.wait(5)
        assert not transport.refused
        await world.delete(POD_GROUPS, "g")
        await world.wait(5)
        assert transport.refused
        broken[0] = False
        await world.wait(60)
        left = await world.get(POD_GROUPS, "g")
        assert left["metadata"]["finalizers"] == ["example.com/other"]
        assert left["spec"] == {"mine": 1}


class Grouping(Around):
    """Lets pods come as members of the group ``g``."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server.transport())

    def stream(self, request: Any) -> Any:
        stream = self._inner.stream(request)
        return _Grouped(stream) if request.path == "/api/v1/pods" else stream


class _Grouped:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aenter__(self) -> Any:
        stream = await self._inner.__aenter__()
        return type(stream)(stream.status, stream.headers, _lines(stream.chunks))

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


async def _lines(chunks: Any) -> Any:
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            event = json.loads(line)
            event["object"].setdefault("spec", {}).update(GROUP)
            yield json.dumps(event).encode() + b"\n"


@pytest.mark.parametrize("ends", [True, False], ids=["the pod ends", "the pod is deleted"])
async def test_a_group_is_kept_until_its_last_pod_has_ended(world: World, ends):
    await serve(world, POD_GROUPS, status={})
    await make(world, POD_GROUPS, {"metadata": {"name": "g", "finalizers": [FINALIZER]}})
    await world.pod("p", {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}, run_time="1h")
    gates = [("", "GenericWorkload=true")]
    names = ["podgroup-protection-controller"]
    async with controllers(world, names=names, gates=gates, transport=Grouping(world)):
        await world.wait(5)
        await world.delete(POD_GROUPS, "g")
        await world.wait(60)
        assert not await world.is_deleted("g", POD_GROUPS)
        if ends:
            await world.wait(3600)
        else:
            await world.delete(PODS, "p")
            await world.wait(5)
        assert await world.is_deleted("g", POD_GROUPS)


async def join(world: World, pod: str, group: str) -> None:
    await world.pod(pod, {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    doc = await world.get(PODS, pod)
    doc["spec"]["schedulingGroup"] = {"podGroupName": group}
    world.server.store.update(PODS.gvr, "default", pod, doc)


async def test_a_group_is_kept_for_a_pod_that_the_cache_does_not_show(world: World):
    """Without its group, the devices that are reserved for the group would be taken from the pod."""
    await serve(world, POD_GROUPS, status={})
    await make(world, POD_GROUPS, {"metadata": {"name": "g", "finalizers": [FINALIZER]}})
    held = Held(world.server.transport(), world.clock, "/api/v1/pods")
    gates = [("", "GenericWorkload=true")]
    async with controllers(world, names=["podgroup-protection-controller"], gates=gates, transport=held):
        await world.wait(5)
        held.hold()
        await join(world, "p", "g")
        await world.delete(POD_GROUPS, "g")
        await world.wait(5)
        assert not await world.is_deleted("g", POD_GROUPS)
        await world.delete(PODS, "p", grace_s=0)
        await world.wait(70)
        assert await world.is_deleted("g", POD_GROUPS)
        held.release()


async def test_groups_that_are_deleted_together_share_a_list_of_pods(world: World):
    await serve(world, POD_GROUPS, status={})
    names = [f"g{number}" for number in range(10)]
    for name in names:
        await make(world, POD_GROUPS, {"metadata": {"name": name, "finalizers": [FINALIZER]}})
        await world.delete(POD_GROUPS, name)
    noting = Noting(world.server.transport())
    gates = [("", "GenericWorkload=true")]
    async with controllers(world, names=["podgroup-protection-controller"], gates=gates, transport=noting):
        await world.wait(5)
        assert [await world.is_deleted(name, POD_GROUPS) for name in names] == [True] * 10
        assert noting.paths("GET").count("/api/v1/namespaces/default/pods") == 1
