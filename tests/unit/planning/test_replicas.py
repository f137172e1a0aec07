"""Numbers of pods: plans of ReplicaSets and ReplicationControllers."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.apps import REPLICA_SETS
from kcm_cli.api.core import PODS, Pod
from kcm_cli.controllers.replicaset.controller import selector_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_time
from kcm_cli.planning import replicas as rules
from kcm_cli.planning.actions import Create, Delete, Mode
from kcm_cli.planning.pod_template import pod_from_template
from kcm_cli.planning.pods import active as active_pods
from kcm_cli.planning.pods import is_terminating
from kcm_cli.planning.replicas import BURST, ReplicaOwner

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return format_time(NOW + timedelta(seconds=seconds))


def owner(replicas: int | None = 3, *, status: dict[str, Any] | None = None, **spec: Any) -> ReplicaOwner:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    full = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template} | spec
    metadata = {"name": "r", "namespace": "ns", "uid": "u", "generation": 4}
    obj = REPLICA_SETS.decode(codec.encode({"metadata": metadata, "spec": full, "status": status or {"replicas": 0}}))
    return ReplicaOwner.of(REPLICA_SETS, obj, selector_of(obj))


def pod(name: str, *, ready_since: float | None = None, age: float = 600, node: str = "n", **labels: str) -> Pod:
    """A pod of an owner; ``ready_since`` in seconds from now, None: not ready."""
    conditions = []
    if ready_since is not None:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready_since)}]
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": {"a": "b"} | labels}
    metadata["creationTimestamp"] = at(-age)
    status = {"phase": "Running", "conditions": conditions}
    return PODS.decode(codec.encode({"metadata": metadata, "spec": {"nodeName": node}, "status": status}))


def pods(count: int) -> list[Pod]:
    return [pod(f"p{n}", ready_since=-60) for n in range(count)]


# -- how many


@pytest.mark.parametrize(
    ("asked", "running", "created", "deleted"),
    [
        pytest.param(3, 3, 0, 0, id="right"),
        pytest.param(3, 1, 2, 0, id="too few"),
        pytest.param(3, 5, 0, 2, id="too many"),
        pytest.param(0, 4, 0, 4, id="none wanted"),
        pytest.param(None, 0, 1, 0, id="one by default"),
        pytest.param(2000, 0, BURST, 0, id="a burst of creations at most"),
        pytest.param(0, BURST + 5, 0, BURST, id="a burst of deletions at most"),
    ],
)
def test_manage(asked: int | None, running: int, created: int, deleted: int) -> None:
    planned = rules.plan(owner(asked), pods(running), [], NOW)
    actions = [action for stage in planned for action in stage.actions]
    assert sum(isinstance(action, Create) for action in actions) == created
    gone = [action for action in actions if isinstance(action, Delete)]
    assert len(gone) == deleted == len({action.uid for action in gone})
    for stage in planned:
        assert stage.mode is (Mode.SLOW_START if created else Mode.PARALLEL)
        assert stage.expect is not None
        assert stage.expect.creations == created
        assert set(stage.expect.deletions) == {f"ns/{action.name}" for action in gone}


def test_a_pod_is_created_from_the_template_and_owned() -> None:
    (stage,) = rules.plan(owner(1), [], [], NOW)
    (create,) = stage.actions
    assert isinstance(create, Create) and isinstance(create.body, bytes)
    body = codec.decode_doc(create.body)
    assert body["metadata"]["labels"] == {"a": "b"}  # type: ignore[index,call-overload]
    (ref,) = body["metadata"]["ownerReferences"]  # type: ignore[index,call-overload,misc]
    assert (ref["kind"], ref["name"], ref["uid"], ref["controller"]) == ("ReplicaSet", "r", "u", True)  # type: ignore[index,call-overload]
    assert ref["blockOwnerDeletion"] is True  # type: ignore[index,call-overload]


@pytest.mark.parametrize("name", ["r", "r" * 252, "r" * 253])
def test_names_of_pods_begin_with_all_of_the_owners_name(name: str) -> None:
    """The API server cuts a prefix that is too long for a name."""
    metadata = {"name": name, "namespace": "ns", "uid": "u"}
    made = pod_from_template({}, REPLICA_SETS, REPLICA_SETS.decode(codec.encode({"metadata": metadata})))
    assert made["metadata"]["generateName"] == f"{name}-"  # type: ignore[index,call-overload]


def chosen(active: list[Pod], count: int) -> set[str]:
    planned = rules.plan(owner(len(active) - count), active, active, NOW)
    return {action.name for stage in planned for action in stage.actions if isinstance(action, Delete)}


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        pytest.param([pod("a", ready_since=-9), pod("b")], {"b"}, id="not ready"),
        pytest.param([pod("a", node=""), pod("b")], {"a"}, id="not on a node"),
        pytest.param([pod("a", ready_since=-9000), pod("b", ready_since=-9)], {"b"}, id="ready for less time"),
    ],
)
def test_order_of_deletion(active: list[Pod], expected: set[str]) -> None:
    assert chosen(active, 1) == expected


@settings(max_examples=50)
@given(
    st.integers(0, 30), st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=30, unique_by=lambda x: x[1])
)
def test_a_plan_is_complete(asked: int, states: list[tuple[bool, int]]) -> None:
    active = [pod(f"p{n}", ready_since=-60 if ready else None, age=n) for ready, n in states]
    planned = rules.plan(owner(asked), active, active, NOW)
    same = rules.plan(owner(asked), list(reversed(active)), active, NOW)
    actions = [action for stage in planned for action in stage.actions]
    gone = {action.uid for action in actions if isinstance(action, Delete)}
    assert gone == {one.uid for stage in same for one in stage.actions if isinstance(one, Delete)}
    made = sum(isinstance(action, Create) for action in actions)
    left = [one for one in active if one.uid not in gone]
    assert rules.plan(owner(asked), [*left, *pods(made)], [], NOW) == ()
    ready = {one.uid for one in active if one.status.conditions}
    assert not gone & ready or not {one.uid for one in left} - ready


def test_ages_of_deleted_pods() -> None:
    active = [pod("old", ready_since=-9, age=1000), pod("young", ready_since=-5, age=100), pod("sick", age=10)]
    planned = rules.plan(owner(1), active, active, NOW)
    assert rules.age_ratios(active, planned, NOW) == [1]
    everyone = rules.plan(owner(0), active, active, NOW)
    assert rules.age_ratios(active, everyone, NOW) == []


# -- pods that nodes reject


def rejected(*ages: float, owner_uid: str = "u", phase: str = "Failed", containers: int = 0) -> list[Pod]:
    """Failed pods of an owner, created so many seconds ago."""
    refs = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner_uid, "controller": True}]
    status = {"phase": phase, "reason": "OutOfcpu", "containerStatuses": [{"name": "c"}] * containers}
    docs = ({"metadata": {"name": "p", "creationTimestamp": at(-age), "ownerReferences": refs}} for age in ages)
    return [PODS.decode(codec.encode(doc | {"spec": {}, "status": status})) for doc in docs]


@pytest.mark.parametrize(
    ("pods", "missing", "expected"),
    [
        pytest.param([], 1, 0, id="none"),
        pytest.param(rejected(0, 1, 2, 3), 1, 0, id="few"),
        pytest.param(rejected(0, 1, 2, 3, 4), 1, 1, id="the first round"),
        pytest.param(rejected(*range(10)), 1, 2, id="the second round"),
        pytest.param(rejected(*range(20)), 1, 8, id="the fourth round"),
        pytest.param(rejected(*range(100)), 1, 60, id="at most a minute"),
        pytest.param(rejected(*range(50, 100)), 1, 10, id="since the last one was created"),
        pytest.param(rejected(*range(70, 99)), 1, 0, id="over"),
        pytest.param(rejected(*range(-100, 0)), 1, 60, id="ahead"),
        pytest.param(rejected(*range(601, 700)), 1, 0, id="long ago"),
        pytest.param(rejected(*[0] * 300), 300, 1, id="a round is what is missing"),
        pytest.param(rejected(*[9] * 200, *[0] * 20), 20, 1, id="a round is what was created at once"),
        pytest.param(rejected(*range(20), phase="Succeeded"), 1, 0, id="not failed"),
        pytest.param(rejected(*range(20), containers=1), 1, 0, id="not rejected"),
        pytest.param(rejected(*range(20), owner_uid="other"), 1, 0, id="of another owner"),
    ],
)
def test_pause_after_rejections(pods: list[Pod], missing: int, expected: float) -> None:
    assert rules.pause_s(owner(), [], pods, missing, NOW) == expected


@pytest.mark.parametrize(
    ("ahead", "most"),
    [
        pytest.param(30, 38, id="half a minute"),
        pytest.param(60, 68, id="a minute"),
        pytest.param(90, 0, id="more than a minute"),
        pytest.param(100_000, 0, id="a day"),
    ],
)
def test_a_clock_that_is_behind_makes_no_pause_without_end(ahead: int, most: float) -> None:
    """The creations are the API server's, which is ahead: the key is queued after each pause."""
    pods, waited = rejected(*range(-ahead, 20 - ahead)), 0.0
    while pause := rules.pause_s(owner(), [], pods, 1, NOW + timedelta(seconds=waited)):
        waited += pause
        assert waited <= most
    assert waited == most


@pytest.mark.parametrize(
    ("age", "containers", "expected"),
    [
        pytest.param(0, 1, 0, id="accepted"),
        pytest.param(25, 1, 8, id="accepted, and 20 rejected since"),
        pytest.param(0, 0, 27, id="not known yet"),
    ],
)
def test_no_pause_for_what_was_rejected_before_a_node_accepted_a_pod(age, containers, expected) -> None:
    """As with TopologyAffinityError, where the next attempt may be on another node."""
    before = rejected(*range(30, 60)) if age else rejected(*range(5, 35))
    since = rejected(*range(20)) if age else []
    active = rejected(age, phase="Running", containers=containers)
    assert rules.pause_s(owner(), active, [*before, *since], 1, NOW) == expected


# -- status


def test_status_counts() -> None:
    subject = owner(4, minReadySeconds=30, template={"metadata": {"labels": {"a": "b", "more": "x"}}})
    active = [
        pod("available", ready_since=-60, more="x"),
        pod("ready", ready_since=-10, more="x"),
        pod("not-ready", more="x"),
        pod("just", ready_since=-30, more="x"),
        pod("unlabelled", ready_since=-60),
    ]
    found = rules.status(subject, active, 2, None, NOW)
    assert (found.replicas, found.ready_replicas, found.available_replicas) == (5, 4, 3)
    assert (found.fully_labeled_replicas, found.observed_generation) == (4, 4)
    assert found.terminating_replicas == 2


FAILING = {"replicas": 0, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]}


@pytest.mark.parametrize(
    ("status", "running", "error", "expected"),
    [
        pytest.param(None, 3, None, [], id="fine"),
        pytest.param(None, 2, OSError("no"), [("FailedCreate", "no")], id="could not create"),
        pytest.param(None, 4, OSError("no"), [("FailedDelete", "unable to delete pods: no")], id="could not delete"),
        pytest.param(None, 3, OSError("no"), [("", "no")], id="could not, and need not"),
        pytest.param(FAILING, 4, OSError("no"), [("FailedCreate", "")], id="the first failure is kept"),
        pytest.param(FAILING, 3, None, [], id="over"),
    ],
)
def test_failures(
    status: dict[str, Any] | None, running: int, error: Exception | None, expected: list[tuple[str, str]]
) -> None:
    found = rules.status(owner(3, status=status), pods(running), None, error, NOW)
    assert [(c.reason, c.message) for c in found.conditions] == expected


def test_a_failure_stays_reported_while_pods_cannot_be_claimed() -> None:
    """Nothing was created or deleted: whether that works is not known."""
    found = rules.status(owner(3, status=FAILING), pods(2), None, None, NOW, observed=False)
    assert [(c.reason, c.status) for c in found.conditions] == [("FailedCreate", "True")]


def test_other_conditions_are_kept() -> None:
    status = {"replicas": 0, "conditions": [{"type": "Other", "status": "True"}, *FAILING["conditions"]]}  # type: ignore[misc]
    found = rules.status(owner(3, status=status), pods(3), None, None, NOW)
    assert [c.type for c in found.conditions] == ["Other"]


@pytest.mark.parametrize(
    ("min_ready", "active", "expected"),
    [
        pytest.param(0, [pod("p", ready_since=0)], None, id="available at once"),
        pytest.param(30, [pod("p", ready_since=-60)], None, id="available"),
        pytest.param(30, [pod("p")], None, id="not ready"),
        pytest.param(30, [pod("p", ready_since=-10)], 20.0, id="soon"),
        pytest.param(30, [pod("p", ready_since=-10), pod("q", ready_since=-25)], 5.0, id="the first"),
        pytest.param(30, [pod("p", ready_since=-10), pod("q", ready_since=-60)], 20.0, id="one is"),
    ],
)
def test_requeue_after(min_ready: int, active: list[Pod], expected: float | None) -> None:
    subject = owner(3, minReadySeconds=min_ready)
    status = rules.status(subject, active, None, None, NOW)
    assert rules.next_check_s(subject, status, active, NOW) == expected


# -- what queues an owner

STATES: dict[str, tuple[Any, ...]] = {
    "phase": ("Pending", "Running", "Succeeded", "Failed"),
    "deleting": (False, True),
    "ready": (None, ("True", -60.0), ("True", -5.0), ("False", -60.0)),
    "started": (False, True),
    "node": ("", "n"),
    "note": ("x", "y"),
}


def in_state(phase: str, deleting: bool, ready: tuple[str, float] | None, started: bool, node: str, note: str) -> Pod:
    ref = {"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    metadata: dict[str, Any] = {"name": "p", "namespace": "ns", "uid": "p", "labels": {"a": "b"}}
    metadata |= {"annotations": {"note": note}, "ownerReferences": [ref], "creationTimestamp": at(-600)}
    if deleting:
        metadata["deletionTimestamp"] = at(0)
    status: dict[str, Any] = {"phase": phase, "containerStatuses": [{"name": "c"}] if started else []}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": ready[0], "lastTransitionTime": at(ready[1])}]
    return PODS.decode(codec.encode({"metadata": metadata, "spec": {"nodeName": node}, "status": status}))


def counted(one: Pod, rejections: list[Pod]) -> object:
    """What a sync sees of a pod: its status, its plan, when it looks again, and whether it waits before it creates."""
    seen = []
    for of in (owner(1), owner(1, minReadySeconds=30), owner(2)):
        active, ended = active_pods([one]), [one, *rejections]
        status = rules.status(of, active, int(is_terminating(one)), None, NOW)
        missing = of.replicas - len(active)
        pause_s = rules.pause_s(of, active, ended, missing, NOW) if missing > 0 else 0.0
        seen.append(
            (status, len(rules.plan(of, active, [], NOW)), pause_s, rules.next_check_s(of, status, active, NOW))
        )
    return seen


def test_each_update_that_a_sync_sees_queues_the_owner() -> None:
    """Versions in between may be missing, so that all fields may change at once."""
    rejections = [in_state("Failed", False, None, False, "n", str(number)) for number in range(9)]
    found = [in_state(*state) for state in product(*STATES.values())]
    seen = [counted(one, rejections) for one in found]
    for (old, before), (new, now) in product(zip(found[::2], seen[::2], strict=True), zip(found, seen, strict=True)):
        assert before == now or rules.matters(old, new)


def test_the_binding_of_a_pod_and_a_note_queue_no_owner() -> None:
    rest = ("Pending", False, None, False)
    assert not rules.matters(in_state(*rest, "", "x"), in_state(*rest, "n", "x"))
    assert not rules.matters(in_state(*rest, "n", "x"), in_state("Running", False, None, False, "n", "y"))
