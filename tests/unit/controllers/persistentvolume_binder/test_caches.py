"""The snapshot of the caches for one decision."""

import random

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS
from kcm_cli.api.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.persistentvolume_binder.caches import Caches, Unsupported
from kcm_cli.machinery import codec
from kcm_cli.runtime.informers import Informers
from tests.unit.planning.volumes.objects import claim, ref, storage_class, volume


class Filled:
    """Caches without a server."""

    def __init__(self, *, attributes_classes: bool = True) -> None:
        self.informers = Informers(None, LoopClock(), random.Random(1))
        self.caches = Caches(self.informers.get, attributes_classes=attributes_classes)

    def put(self, resource, *objects):
        for obj in objects:
            self.informers.get(resource)._put(obj)


def pod(name, claim_name, *, node="", **status):
    doc = {
        "metadata": {"name": name, "namespace": "d", **status.pop("metadata", {})},
        "spec": {"nodeName": node, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]},
        "status": {"phase": "Pending", **status},
    }
    return PODS.decode(codec.encode(doc))


@pytest.fixture
def filled():
    return Filled()


def test_waiting_pods_use_the_claim_and_are_not_scheduled(filled):
    running = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    going = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    filled.put(STORAGE_CLASSES, storage_class("gold", volumeBindingMode="WaitForFirstConsumer"))
    filled.put(
        PODS,
        pod("b", "c"),
        pod("a", "c"),
        pod("placed", "c", node="n"),
        pod("over", "c", phase="Succeeded"),
        pod("going", "c", **going),
        pod("going-still", "c", metadata=dict(going["metadata"]), **running),
        pod("other", "other"),
    )
    snapshot = filled.caches.read(claim())
    assert (snapshot.delayed, snapshot.waiting_pods) == (True, ("a", "b", "going-still"))


def test_the_default_class_is_used_only_if_the_claim_has_none(filled):
    marked = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    filled.put(STORAGE_CLASSES, storage_class("usual", metadata=marked))
    assert filled.caches.read(claim(storageClassName=None)).default == "usual"
    assert filled.caches.read(claim()).default == ""


def test_own_writes_count_until_the_watch_shows_them(filled):
    old, ours = volume("a"), volume("a", claimRef=ref("other"), metadata={"resourceVersion": "2"})
    filled.put(PERSISTENT_VOLUMES, old)
    assert filled.caches.read(claim()).volume is old
    filled.caches.volumes.wrote(ours)
    filled.put(PERSISTENT_VOLUMES, volume("a", metadata={"labels": {"a": "b"}}))
    assert filled.caches.read(claim()).volume is None
    filled.put(PERSISTENT_VOLUMES, volume("a", metadata={"resourceVersion": "3"}))
    assert filled.caches.read(claim()).volume is not None


def test_a_late_response_does_not_restore_a_deleted_object(filled):
    filled.put(PERSISTENT_VOLUMES, volume("a"))
    filled.informers.get(PERSISTENT_VOLUMES)._remove("a")
    filled.caches.volumes.wrote(volume("a", metadata={"resourceVersion": "2"}))
    assert filled.caches.read(claim()).volume is None
    filled.put(PERSISTENT_VOLUME_CLAIMS, claim(metadata={"uid": "new"}))
    filled.caches.claims.wrote(claim(metadata={"uid": "old", "resourceVersion": "9"}))
    assert filled.caches.claims.get("d/c").uid == "new"


async def test_an_older_version_is_taken_once_the_cache_has_shown_it_for_a_whole_pass(filled):
    """The storage was restored from a backup. A list may also be a moment behind, which does not count."""

    def shown() -> str:
        found = filled.caches.volumes.get("a")
        return found.metadata.resource_version if found is not None else ""

    newest, older = volume("a", metadata={"resourceVersion": "9"}), volume("a", metadata={"resourceVersion": "5"})
    filled.put(PERSISTENT_VOLUMES, newest, older)
    await filled.caches.catch_up()
    filled.put(PERSISTENT_VOLUMES, newest)
    for _ in range(3):
        await filled.caches.catch_up()
        assert shown() == "9"
    filled.put(PERSISTENT_VOLUMES, older)
    await filled.caches.catch_up()
    assert shown() == "9"
    filled.put(PERSISTENT_VOLUMES, volume("a", metadata={"resourceVersion": "6"}))
    await filled.caches.catch_up()
    assert shown() == "6"
    filled.put(PERSISTENT_VOLUMES, older)
    await filled.caches.catch_up()
    filled.informers.get(PERSISTENT_VOLUMES)._remove("a")
    await filled.caches.catch_up()
    assert shown() == ""


def test_attributes_classes_are_refused_if_not_supported():
    wanted = claim(volumeAttributesClassName="fast")
    with pytest.raises(Unsupported, match="VolumeAttributesClass is disabled"):
        Filled(attributes_classes=False).caches.read(wanted)
    assert Filled().caches.read(wanted).volume is None
