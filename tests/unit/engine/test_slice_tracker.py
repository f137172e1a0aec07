"""Whose change it was, and whether the cache shows ours."""

import random
from typing import Any

from kcm_cli.api.discovery import ENDPOINT_SLICES, EndpointSlice
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.slice_tracker import SliceTracker
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
        self.caught_up: list[str] = []
        client = Client(None, limiter=Unlimited(), user_agent="t", clock=LoopClock())  # type: ignore[arg-type]
        self.informer: Informer[EndpointSlice] = Informer(ENDPOINT_SLICES, client, LoopClock(), random.Random(1))
        self.tracker = SliceTracker(MANAGER, self.changed.append, self.caught_up.append)
        self.tracker.listen(self.informer)

    def put(self, *slices: EndpointSlice) -> None:
        for each in slices:
            self.informer._put(each)
            self.informer.last_version = each.metadata.resource_version

    def remove(self, gone: EndpointSlice, version: int) -> None:
        self.informer._remove(gone.key, gone)
        self.informer.last_version = str(version)

    def stale(self) -> bool:
        return self.tracker.stale(KEY, self.informer.store.list())


def test_our_own_write_calls_nobody():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5))
    assert world.changed == []
    assert not world.stale()


def test_a_write_that_the_cache_does_not_show_is_waited_for():
    world = Fixture()
    world.put(slice_(5))
    world.changed.clear()
    world.tracker.wrote(slice_(7, 2))
    assert world.stale()
    world.put(slice_(7, 2))
    assert world.caught_up == [KEY]
    assert world.changed == []
    assert not world.stale()


def test_a_write_of_labels_is_waited_for():
    world = Fixture()
    world.put(slice_(5))
    world.tracker.wrote(slice_(7))
    assert world.stale()


def test_a_creation_is_waited_for():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    assert world.stale()
    world.put(slice_(5))
    assert not world.stale()


def test_a_creation_that_was_undone_before_its_answer_came_is_not_waited_for():
    world = Fixture()
    world.put(slice_(5))
    world.remove(slice_(6), 6)
    world.tracker.wrote(slice_(5))
    assert not world.stale()


def test_a_deletion_is_waited_for():
    world = Fixture()
    world.put(slice_(5))
    world.changed.clear()
    world.tracker.deleted(KEY, "1")
    assert world.stale()
    world.remove(slice_(6), 6)
    assert world.changed == []
    assert world.caught_up == [KEY]
    assert not world.stale()


def test_a_deletion_shown_before_its_answer_is_no_news():
    world = Fixture()
    world.put(slice_(5))
    world.remove(slice_(6), 6)
    world.tracker.deleted(KEY, "1")
    assert not world.stale()


def test_changes_by_others_call():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5), slice_(6, 1))
    assert world.changed == []
    world.put(slice_(7, 2))
    assert world.changed == [KEY]


def test_deletions_by_others_call():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5))
    world.remove(slice_(6), 6)
    assert world.changed == [KEY]


def test_unknown_slices_call_unless_somebody_else_manages_them():
    world = Fixture()
    world.put(slice_(5, uid="1", manager="other"))
    assert world.changed == []
    world.put(slice_(6, uid="2"))
    assert world.changed == [KEY]


def test_a_change_of_the_manager_calls():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5), slice_(6, manager="other"))
    assert world.changed == [KEY]


def test_a_change_of_the_service_calls_both():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.put(slice_(5), slice_(6, service="db"))
    assert sorted(world.changed) == ["ns/db", "ns/web"]


def test_a_forgotten_service_waits_for_nothing():
    world = Fixture()
    world.tracker.wrote(slice_(5))
    world.tracker.forget(KEY)
    assert not world.stale()
