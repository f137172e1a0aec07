"""The initial state is read while objects change."""

import asyncio
from typing import Any

from kcm_cli.api.core import NODES, PODS
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from tests.unit.controllers.persistentvolume_attach_detach.caches import Caches, meta

COUNT = 400


async def test_reading_the_state_yields_and_sees_concurrent_changes() -> None:
    caches = Caches(COUNT)
    world, turns = caches.world(), 0
    pods: Any = caches.informers.get(PODS)
    pods.listen(on_delete=world.pod_deleted)
    reading = asyncio.create_task(world.populate())
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 2:
            pods._remove(f"ns/p{COUNT - 1}")  # as the watch does
    await reading
    assert turns > 5
    assert len(list(world.desired)) == COUNT - 1
    assert len(world.volumes) >= COUNT - 1


async def test_a_claim_of_many_pods_does_not_hold_the_loop() -> None:
    caches = Caches(1)
    world, turns = caches.world(), 0
    await world.populate()
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c0"}}]
    for number in range(COUNT):
        caches.put(PODS, {"metadata": meta(f"q{number}"), "spec": {"nodeName": "n0", "volumes": volumes}})
    pods: Any = caches.informers.get(PODS)
    pods.listen(on_delete=world.pod_deleted)
    reading = asyncio.create_task(world.sync_claim("ns/c0"))
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 2:
            pods._remove(f"ns/q{COUNT - 1}")
    await reading
    assert turns > 5
    assert len(world.desired.pods()) == COUNT


async def test_pods_that_are_gone_or_made_again_are_forgotten_by_the_next_reading_of_all() -> None:
    """Their deletions were not seen."""
    caches = Caches(3)
    world = caches.world()
    await world.populate()
    store = caches.informers.get(PODS).store
    again: dict[str, Any] = {"metadata": {**meta("p1"), "uid": "again"}, "spec": {"nodeName": "n1"}}
    again["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c1"}}]
    assert world.desired.pods() == {"p0", "p1", "p2"}
    store.pop("ns/p0")
    caches.put(PODS, again)
    await world.read_pods()
    assert world.desired.pods() == {"again", "p2"}


async def test_deleted_nodes_are_forgotten_when_nothing_is_attached_any_more() -> None:
    """As when a cluster shrinks, and its new nodes have other names."""
    caches = Caches(2)
    world = caches.world()
    await world.populate()
    for number in range(2):
        world.actual.attached(f"h{number}", None, f"n{number}")
    nodes: Any = caches.informers.get(NODES)
    nodes.listen(on_delete=world.node_deleted)
    nodes._remove("n0")
    await world.read_pods()
    assert holds(world) == {"n0", "n1"}
    world.pod_deleted(caches.informers.get(PODS).store.get("ns/p0"))
    world.actual.detached("h0", "n0")
    await world.statuses.sync("n0")
    caches.informers.get(PODS).store.pop("ns/p0")
    await world.read_pods()
    assert holds(world) == {"n1"}


def holds(world: World) -> set[str]:
    """The nodes of which it knows anything."""
    desired, actual, statuses = world.desired, world.actual, world.statuses
    parts = (desired._nodes, desired._on_node, actual._on_node, actual._in_use, actual._reported)
    return set().union(*parts, statuses._locks, statuses._written)
