"""Counts that follow the store."""

import random
from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.status.counts import EVENTS, KEPT_EVENTS, NODES, PODS, Counts
from kcm_cli.sandbox.status.state import NodeCounts


@pytest.fixture
def store() -> Store:
    return Store(None)


@pytest.fixture
def counts(store: Store) -> Counts:
    return Counts(store, LoopClock())


def pod(phase: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": metadata, "status": {"phase": phase}}


def node(ready: str) -> dict[str, Any]:
    return {"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def test_pods_by_phase(store: Store, counts: Counts) -> None:
    for number, phase in enumerate(["Pending", "Running", "Running", "Succeeded", ""]):
        store.create(PODS, "default", f"p{number}", pod(phase))
    assert counts.pods == (("Running", 2), ("Pending", 1), ("Succeeded", 1), ("Unknown", 1))
    store.update(PODS, "default", "p0", pod("Running"))
    store.update(PODS, "default", "p1", pod("Running", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert counts.pods == (("Running", 2), ("Terminating", 1), ("Succeeded", 1), ("Unknown", 1))
    store.delete(PODS, "default", "p1")
    store.delete(PODS, "default", "p4")
    assert counts.pods == (("Running", 2), ("Succeeded", 1))


def test_nodes(store: Store, counts: Counts) -> None:
    for name, ready in (("b", "False"), ("a", "Unknown"), ("c", "True")):
        store.create(NODES, "", name, node(ready))
    store.create(NODES, "", "new", {"metadata": {}})
    assert counts.nodes == NodeCounts(1, ("a", "b", "new"))
    store.update(NODES, "", "a", node("True"))
    store.delete(NODES, "", "b")
    store.delete(NODES, "", "new")
    assert counts.nodes == NodeCounts(2)


def test_existing_objects_are_counted(store: Store) -> None:
    store.create(PODS, "default", "p", pod("Running"))
    store.create(NODES, "", "n", node("True"))
    counts = Counts(store, LoopClock())
    assert (counts.pods, counts.nodes) == ((("Running", 1),), NodeCounts(1))
    store.delete(PODS, "default", "p")
    assert counts.pods == ()


def event(message: str, name: str = "p", reason: str = "R") -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": name}
    return {"metadata": {}, "involvedObject": about, "type": "Normal", "reason": reason, "message": message}


def test_events_are_ordered_by_their_last_update(store: Store, counts: Counts) -> None:
    for name in ("a", "b", "c"):
        store.create(EVENTS, "default", name, event(name, reason=name))
    store.update(EVENTS, "default", "a", event("a\n again", reason="a"))
    store.delete(EVENTS, "default", "b")
    assert [(one.message, one.count) for one in counts.events] == [("b", 1), ("c", 1), ("a again", 1)]
    assert counts.events[0].about == "pod/p"


def test_events_of_many_pods_are_aggregated(store: Store, counts: Counts) -> None:
    for number in range(3):
        store.create(EVENTS, "default", f"web-{number}", event(f"to node-{number}", f"web-5d-{number}", "Scheduled"))
    store.create(EVENTS, "default", "other", event("to node-1", "db-0", "Scheduled"))
    store.create(EVENTS, "default", "again", event("to node-2", "db-0", "Scheduled"))
    store.update(EVENTS, "default", "web-0", event("to node-0 after all", "web-5d-0", "Scheduled"))
    assert [(one.about, one.count, one.message) for one in counts.events] == [
        ("pod/db-0", 2, "to node-2"),
        ("pod/web-5d-…", 3, "to node-0 after all"),
    ]


def test_few_events_are_kept(store: Store, counts: Counts) -> None:
    for number in range(3 * KEPT_EVENTS):
        store.create(EVENTS, "default", f"e{number}", event(str(number), reason=f"R{number}"))
    assert [one.message for one in counts.events] == [str(n) for n in range(2 * KEPT_EVENTS, 3 * KEPT_EVENTS)]


@pytest.mark.parametrize("status", [None, {"phase": None}, {"conditions": None}])
def test_nulls_do_not_refuse_a_write(store: Store, counts: Counts, status: object) -> None:
    store.create(PODS, "default", "p", {"metadata": {}, "status": status})
    store.create(NODES, "", "n", {"metadata": {}, "status": status})
    assert counts.pods == (("Unknown", 1),)
    assert counts.nodes == NodeCounts(0, ("n",))


def test_counts_after_any_history_equal_new_ones(store: Store, counts: Counts) -> None:
    rng = random.Random(5)
    for _ in range(2000):
        name, phase = f"p{rng.randrange(40)}", rng.choice(["Pending", "Running", "Failed", ""])
        there = store.get(PODS, "default", name) is not None
        deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if rng.random() < 0.2 else {}
        if not there:
            store.create(PODS, "default", name, pod(phase, **deleted))
        elif rng.random() < 0.3:
            store.delete(PODS, "default", name)
        else:
            store.update(PODS, "default", name, pod(phase, **deleted))
    assert counts.pods == Counts(store, LoopClock()).pods
    assert sum(count for _, count in counts.pods) == store.count(PODS)
