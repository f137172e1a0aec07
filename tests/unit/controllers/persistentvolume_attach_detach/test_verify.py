"""Attachments are compared with VolumeAttachments."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.api.storage import PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.persistentvolume_attach_detach.attacher import Attacher
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.verify import Verifier
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from kcm_cli.planning.volumes.attachable import attachment_name, of_volume
from tests.unit.controllers.persistentvolume_attach_detach.caches import Caches

COUNT = 400


class Cluster:
    """Volumes that are attached to the node ``n0``, with their VolumeAttachments. ``asked``: the names of those that
    were looked up on the API server, which has none; ``meanwhile`` is called then."""

    def __init__(self, count: int) -> None:
        self.caches, self.asked = Caches(count), list[str]()
        self.world: World = self.caches.world()
        self.names = [self._attach(number) for number in range(count)]
        client: Any = SimpleNamespace(find=self._find)
        metrics = AttachDetachMetrics(Registry(), LoopClock())
        self.verifier = Verifier(self.world, Attacher(client, self.world.attachments), metrics)

    def meanwhile(self) -> None: ...

    def _attach(self, number: int) -> str:
        volume = of_volume(self.caches.informers.get(PERSISTENT_VOLUMES).store.get(f"v{number}"))
        assert volume is not None
        self.world.actual.attached(volume.unique_name, volume, "n0")
        self.put(number, {"attached": True})
        return volume.unique_name

    def put(self, number: int, status: dict[str, Any], **meta: Any) -> None:
        doc = {"metadata": {"name": attachment_name("d", f"h{number}", "n0"), **meta}, "status": status}
        self.caches.put(VOLUME_ATTACHMENTS, doc)

    async def _find(self, resource: object, namespace: str, name: str) -> None:
        self.asked.append(name)
        self.meanwhile()


async def test_verifying_yields_and_finds_what_is_missing() -> None:
    cluster, turns = Cluster(COUNT), 0
    store = cluster.caches.informers.get(VOLUME_ATTACHMENTS).store
    store.pop(attachment_name("d", "h7", "n0"))
    sweep = asyncio.create_task(cluster.verifier.sweep())
    while not sweep.done():
        await asyncio.sleep(0)
        turns += 1
    await sweep
    assert turns > 10
    assert len(cluster.asked) == 1
    assert cluster.world.actual.get(cluster.names[7]) is None
    assert len(list(cluster.world.actual)) == COUNT - 1
    assert len(cluster.world.volumes) == len(cluster.world.node_queue) == 1


DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("meta", "kept"), [pytest.param({}, True, id="exists"), pytest.param(DELETING, False, id="is being deleted")]
)
async def test_a_volume_whose_attachment_is_not_attached_is_not_forgotten(meta: dict[str, Any], kept: bool) -> None:
    """kubernetes-csi/external-attacher#215: its VolumeAttachment would stay if no pod needed it any more."""
    cluster = Cluster(1)
    (name,), actual = cluster.names, cluster.world.actual
    cluster.put(0, {"attached": False}, **meta)
    await cluster.verifier.sweep()
    assert (actual.attachment(name, "n0") is not None) is kept
    assert not actual.confirmed_nodes(name)
    assert actual.reports("n0") == []
    assert len(cluster.world.volumes) == len(cluster.world.node_queue) == 1


async def test_a_volume_that_is_attached_again_during_a_verification_is_kept() -> None:
    cluster = Cluster(2)
    store, actual = cluster.caches.informers.get(VOLUME_ATTACHMENTS).store, cluster.world.actual
    store.pop(attachment_name("d", "h0", "n0"))
    (first, second), known = cluster.names, actual.get(cluster.names[1])
    assert known is not None

    def attach_again() -> None:
        for name in first, second:
            actual.detached(name, "n0")
        actual.attached(first, None, "n0")
        actual.uncertain(second, known.volume, "n0")
        cluster.put(1, {})

    cluster.meanwhile = attach_again  # type: ignore[method-assign]
    await cluster.verifier.sweep()
    assert actual.confirmed_nodes(first) == ["n0"]
    assert actual.attachment(second, "n0") is not None
