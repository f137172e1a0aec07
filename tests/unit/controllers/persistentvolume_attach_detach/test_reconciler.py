"""How often a volume is checked that many nodes share."""

from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_attach_detach.reconciler import GATHER_S, MANY, Reconciler
from kcm_cli.planning.volumes.attachable import AttachableVolume
from tests.unit.controllers.persistentvolume_attach_detach.test_world import Caches

SHARED = AttachableVolume("kubernetes.io/csi/d^h", "v", "kubernetes.io/csi", True, "d", "h")


def reconciler(nodes: int) -> tuple[Reconciler, Any]:
    """One of a volume that is attached to these nodes, and needed there; and its world."""
    caches = Caches(0)
    context: Any = SimpleNamespace(
        client=None,
        clock=caches.clock,
        recorder_for=lambda source: None,
        config=lambda group: AttachDetachConfig(),
    )
    world, metrics, parts = caches.world(), SimpleNamespace(volume=lambda *counts: None), [None, None]
    for number in range(nodes):
        node, uid = f"n{number}", f"u{number}"
        pod: Any = SimpleNamespace(uid=uid, name=uid, namespace="ns", spec=SimpleNamespace(node_name=node))
        world.desired.add(pod, SHARED)
        world.actual.attached(SHARED.unique_name, SHARED, node)
    return Reconciler(context, world, parts[0], metrics, parts[1]), world  # type: ignore[arg-type]


@pytest.mark.parametrize("nodes", [2, 2 * MANY])
async def test_a_volume_of_many_nodes_is_checked_once_in_a_while(nodes: int) -> None:
    """Each of its pods and operations asks for it, and each check looks at all nodes."""
    made, world = reconciler(nodes)
    looked: list[str] = []
    keep = world.actual.keep
    world.actual.keep = lambda name, node: (looked.append(node), keep(name, node))
    again = [await made.sync(SHARED.unique_name) for _ in range(10)]
    if nodes > MANY:
        assert again[0] is None
        assert all(wait is not None and 0 < wait <= GATHER_S for wait in again[1:])
        assert len(looked) == nodes
    else:
        assert again == [None] * 10
        assert len(looked) == 10 * nodes


async def test_a_retry_is_not_put_off() -> None:
    """A check that is put off does not fail: the delay between retries would begin anew, and never grow."""
    made, world = reconciler(2 * MANY)
    assert await made.sync(SHARED.unique_name) is None
    world.volumes.add_rate_limited(SHARED.unique_name)
    assert await made.sync(SHARED.unique_name) is None
    world.volumes.forget(SHARED.unique_name)
    assert await made.sync(SHARED.unique_name) is not None
    world.volumes.shut_down()
