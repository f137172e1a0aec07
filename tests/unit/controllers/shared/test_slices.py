"""Own writes of slices and those of others. (Whether the cache has own writes: test_own_writes.py.)"""

import random
from typing import Any

from kcm_cli.api.discovery import ENDPOINT_SLICES, EndpointSlice
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.shared.slices import SliceTracker
from kcm_cli.machinery import codec
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.runtime.informer import Informer

MANAGER, KEY = "me", "ns/web"


def slice_(version: int, generation: int = 1, uid: str = "1", *, manager: str = MANAGER, service: str = "web") -> Any:
    metadata = {
        "name": f"web-{uid}",
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "generation": generation,
        "labels": {"endpointslice.kubernetes.io/managed-by": manager, "kubernetes.io/service-name": service},
    }
    return ENDPOINT_SLICES.decode(codec.encode({"metadata": metadata, "addressType": "IPv4", "endpoints": []}))


class Fixture:
    """A tracker that follows a cache; what it called."""

    def __init__(self) -> None:
        self.changed: list[str] = []
        client = Client(None, limiter=Unlimited(), user_agent="t", clock=LoopClock())  # type: ignore[arg-type]
        self.informer: Informer[EndpointSlice] = Informer(ENDPOINT_SLICES, client, LoopClock(), random.Random(1))
        self.informer.progress.reached("1")
        self.tracker = tracker = SliceTracker(MANAGER, self.informer)
        self.informer.listen(
            on_add=lambda one: self.changed.extend(tracker.slice_added(one)),
            on_update=lambda old, new: self.changed.extend(tracker.slice_updated(old, new)),
            on_delete=lambda one: self.changed.extend(tracker.slice_deleted(one)),
        )

    def put(self, *slices: EndpointSlice) -> None:
        for each in slices:
            self.informer._put(each)
            self.informer.progress.reached(each.metadata.resource_version)

    def remove(self, gone: EndpointSlice, version: int) -> None:
        self.informer._remove(gone.key, gone)
        self.informer.progress.reached(str(version))


def test_an_own_write_queues_nothing():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5))
    world.tracker.wrote(slice_(7, 2))
    world.put(slice_(7, 2))
    assert world.changed == []


def test_an_own_write_observed_before_its_response_is_known_afterwards():
    world = Fixture()
    world.put(slice_(5))
    world.changed.clear()
    world.tracker.wrote(slice_(5))
    world.put(slice_(6))
    assert world.changed == []


def test_an_own_deletion_queues_nothing():
    world = Fixture()
    world.put(slice_(5))
    world.changed.clear()
    world.tracker.deleted(KEY, "ns/web-1", "1")
    world.remove(slice_(6), 7)
    assert world.changed == []


def test_a_change_of_a_slice_that_is_still_there_after_its_deletion_queues():
    """It has a finalizer. What is in it by now may be wrong, as upstream assumes."""
    world = Fixture()
    world.put(slice_(5))
    world.changed.clear()
    world.tracker.deleted(KEY, "ns/web-1", "1")
    world.put(slice_(6, 2))
    assert world.changed == [KEY]


def test_a_slice_deleted_before_the_response_to_its_write_is_not_tracked():
    world = Fixture()
    world.put(slice_(5))
    world.remove(slice_(6), 6)
    world.tracker.wrote(slice_(5))
    world.tracker.deleted(KEY, "ns/web-1", "1")
    assert not any(world.tracker._written.values())


def test_an_unchanged_slice_is_tracked_unless_it_was_written():
    world = Fixture()
    world.tracker.follow(slice_(5, 3))
    world.tracker.follow(slice_(6, 4))
    world.put(slice_(7, 3))
    assert world.changed == []
    world.put(slice_(8, 4))
    assert world.changed == [KEY]


def test_each_change_of_a_slice_that_was_only_read_queues_and_so_does_its_deletion():
    world = Fixture()
    world.put(slice_(5))
    world.tracker.read(slice_(5))
    world.changed.clear()
    world.put(slice_(6))
    assert world.changed == [KEY]
    world.remove(slice_(6), 7)
    assert world.changed == [KEY, KEY]
    assert not any(world.tracker._written.values())


def test_reading_a_slice_keeps_what_was_written():
    world = Fixture()
    world.put(slice_(5))
    world.tracker.wrote(slice_(6, 2))
    world.tracker.read(slice_(5))
    world.changed.clear()
    world.put(slice_(6, 2))
    assert world.changed == []
    world.tracker.deleted(KEY, "ns/web-1", "1")
    world.tracker.read(slice_(6, 2))
    world.remove(slice_(6, 2), 7)
    assert world.changed == []


def test_changes_by_others_queue():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5), slice_(6, 1))
    assert world.changed == []
    world.put(slice_(7, 2))
    assert world.changed == [KEY]


def test_deletions_by_others_queue():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5))
    world.remove(slice_(6), 6)
    assert world.changed == [KEY]


def test_unknown_slices_queue_unless_managed_by_another_controller():
    world = Fixture()
    world.put(slice_(5, uid="1", manager="other"))
    assert world.changed == []
    world.put(slice_(6, uid="2"))
    assert world.changed == [KEY]


def test_a_change_of_the_manager_queues():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5), slice_(6, manager="other"))
    assert world.changed == [KEY]


def test_a_change_of_the_service_queues_both():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5), slice_(6, service="db"))
    assert sorted(world.changed) == ["ns/db", "ns/web"]
    assert not any(world.tracker._written.values())


def test_a_removed_service_has_no_writes():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.tracker.forget(KEY)
    world.put(slice_(5))
    assert world.changed == [KEY]
