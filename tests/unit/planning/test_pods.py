import math
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kcm_cli.api.core import PODS, Condition, Container, ContainerStatus, Pod, PodSpec, PodStatus
from kcm_cli.api.well_known import DELETION_COST
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference, controller_of
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning import pods as rules

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds):
    return None if seconds is None else format_time(NOW - timedelta(seconds=seconds))


def pod(
    uid="u",
    *,
    node="n",
    phase="Running",
    ready=True,
    ready_for=1000,
    age=1000,
    cost=None,
    restarts=0,
    sidecar_restarts=0,
    deleting=False,
    orphan=True,
):
    conditions = (Condition("Ready", "True" if ready else "False", last_transition_time=ago(ready_for)),)
    annotations = {} if cost is None else {DELETION_COST: cost}
    return Pod(
        metadata=ObjectMeta(
            uid,
            "ns",
            uid,
            creation_timestamp=ago(age),
            annotations=annotations,
            owner_references=()
            if orphan
            else (OwnerReference("v1", "ReplicationController", "web", "o", controller=True),),
            deletion_timestamp=ago(1) if deleting else None,
        ),
        spec=PodSpec(node_name=node, init_containers=(Container("side", restart_policy="Always"), Container("init"))),
        status=PodStatus(
            phase=phase,
            conditions=conditions,
            container_statuses=(ContainerStatus("c", restart_count=restarts),),
            init_container_statuses=(
                ContainerStatus("side", restart_count=sidecar_restarts),
                ContainerStatus("init", restart_count=99),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("z", node=""), pod("a")),
        (pod("z", phase="Pending"), pod("a", phase="Unknown")),
        (pod("z", phase="Unknown"), pod("a")),
        (pod("z", ready=False), pod("a")),
        (pod("z", cost="-5"), pod("a")),
        (pod("z"), pod("a", cost="1")),
        (pod("z", ready_for=10), pod("a", ready_for=100)),
        (pod("z", ready_for=None), pod("a")),
        (pod("z", restarts=2), pod("a", restarts=1)),
        (pod("z", sidecar_restarts=1), pod("a")),
        (pod("z", restarts=1), pod("a", sidecar_restarts=9)),
        (pod("z", ready=False, age=10), pod("a", ready=False, age=1000)),
        (pod("z", age=10), pod("a", age=1000)),
        (pod("a", ready_for=11), pod("z", ready_for=9)),
        (pod("a"), pod("z")),
        (pod("z", orphan=False), pod("a")),
        (pod("a", age=11), pod("z", age=9, orphan=False)),
        (pod("z", node="", ready=True), pod("a", node="n", ready=False)),
        (pod("z", phase="Pending", cost="9"), pod("a", cost="-9")),
    ],
    ids=[
        "unassigned",
        "pending before unknown",
        "unknown before running",
        "not ready",
        "cheaper",
        "no cost is zero",
        "ready for less time",
        "ready since never",
        "more restarts",
        "more sidecar restarts",
        "restarts of containers before those of sidecars",
        "younger, both not ready",
        "younger",
        "near ready times tie, uid decides",
        "uid decides",
        "a pod that is only being adopted is kept",
        "near ages tie, uid decides all the same",
        "assignment before readiness",
        "phase before cost",
    ],
)
def test_order_of_deletion(first, second):
    for order in ([first, second], [second, first]):
        assert rules.rank_for_deletion(order, [], NOW) == [first, second]


def test_pods_of_crowded_nodes_are_deleted_first():
    crowded, lonely = pod("z", node="n1"), pod("a", node="n2")
    related = [crowded, lonely, pod("b", node="n1"), pod("c", node="n2", deleting=True)]
    assert rules.rank_for_deletion([lonely, crowded], related, NOW) == [crowded, lonely]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("+5", 0),
        ("05", 0),
        ("x", 0),
        ("", 0),
        ("2147483648", 0),
        ("9" * 5000, 0),
        ("1.5", 0),
    ],
)
def test_deletion_costs(text, cost):
    assert rules.deletion_cost(pod(cost=text)) == cost


@pytest.mark.parametrize(
    ("phase", "deleting", "active", "terminating"),
    [
        ("Running", False, True, False),
        ("Running", True, False, True),
        ("Succeeded", False, False, False),
        ("Failed", True, False, False),
        ("", False, True, False),
    ],
)
def test_active_and_terminating(phase, deleting, active, terminating):
    candidate = pod(phase=phase, deleting=deleting)
    assert rules.is_active(candidate) is active
    assert rules.is_terminating(candidate) is terminating


@pytest.mark.parametrize(
    ("phase", "deleting", "status", "expected"),
    [
        pytest.param("Running", False, {}, False, id="runs"),
        pytest.param("Succeeded", False, {}, True, id="succeeded"),
        pytest.param("Failed", False, {}, True, id="failed"),
        pytest.param("Pending", True, {}, True, id="going, never started"),
        pytest.param("Running", True, {"containerStatuses": ["running"]}, False, id="going, runs"),
        pytest.param("Running", True, {"containerStatuses": ["terminated", "waiting"]}, True, id="going, stands still"),
        pytest.param("Running", True, {"containerStatuses": [""]}, False, id="going, unknown"),
        pytest.param("Running", False, {"containerStatuses": ["terminated"]}, False, id="stands still"),
        pytest.param("Running", True, {"initContainerStatuses": ["running"]}, False, id="init container runs"),
        pytest.param("Running", True, {"ephemeralContainerStatuses": ["running"]}, False, id="debugged"),
    ],
)
def test_stopped(phase, deleting, status, expected):
    states = {kind: [{"name": "c", "state": {one: {}} if one else {}} for one in ones] for kind, ones in status.items()}
    metadata = {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z" if deleting else None}
    found = PODS.decode(codec.encode({"metadata": metadata, "status": {"phase": phase, **states}}))
    assert rules.is_stopped(found) is expected


@pytest.mark.parametrize(
    ("ready", "ready_for", "min_ready", "available"),
    [
        (True, 10, 10, True),
        (True, 9, 10, False),
        (True, None, 0, True),
        (True, None, 1, False),
        (False, 100, 0, False),
    ],
)
def test_availability(ready, ready_for, min_ready, available):
    assert rules.is_available(pod(ready=ready, ready_for=ready_for), min_ready, NOW) is available


_pods = st.builds(
    lambda uid, facts: pod(str(uid), **facts),
    st.integers(0, 99),
    st.fixed_dictionaries(
        {},
        optional={
            "node": st.sampled_from(["", "n1", "n2"]),
            "phase": st.sampled_from(["Pending", "Running"]),
            "ready": st.booleans(),
            "cost": st.sampled_from(["-1", "1"]),
            "restarts": st.integers(0, 1),
        },
    ),
)


_aged = st.builds(
    lambda uid, facts: pod(str(uid), **facts),
    st.integers(0, 99),
    st.fixed_dictionaries(
        {
            "ready": st.sampled_from([True, True, False]),
            "ready_for": st.sampled_from([None, -5, 1000, 1001, 5000]),
            "age": st.sampled_from([None, 1000, 1001, 5000]),
            "restarts": st.integers(0, 1),
            "orphan": st.booleans(),
        },
        optional={"node": st.sampled_from(["", "n2"]), "phase": st.just("Pending"), "cost": st.just("1")},
    ),
)


@given(st.lists(_pods | _aged, unique_by=lambda p: p.uid), st.randoms())
def test_the_ranking_does_not_depend_on_the_order_of_the_list(candidates, rng):
    expected = rules.rank_for_deletion(candidates, candidates, NOW)
    shuffled = list(candidates)
    rng.shuffle(shuffled)
    assert rules.rank_for_deletion(shuffled, candidates, NOW) == expected
    assert sorted(p.uid for p in expected) == sorted(p.uid for p in candidates)


def goes_before(one: Pod, other: Pod, crowd: Counter[str]) -> bool:
    """What the criteria say of two pods, one criterion after the other."""
    for criterion in (
        lambda pod: rules.is_placed(pod),
        lambda pod: rules.PHASES[pod.status.phase],
        lambda pod: rules.is_ready(pod),
        lambda pod: rules.deletion_cost(pod),
        lambda pod: -crowd[pod.spec.node_name],
    ):
        if criterion(one) != criterion(other):
            return criterion(one) < criterion(other)
    ages = [(age(rules.ready_since(one)), age(rules.ready_since(other)))] if rules.is_ready(one) else []
    if (by_age := younger(one, other, *ages)) is not None:
        return by_age
    if rules.restarts(one) != rules.restarts(other):
        return rules.restarts(one) > rules.restarts(other)
    created = age(one.metadata.creation_timestamp), age(other.metadata.creation_timestamp)
    if (by_age := younger(one, other, created)) is not None:
        return by_age
    adopted = controller_of(one) is not None, controller_of(other) is not None
    return adopted[0] if adopted[0] != adopted[1] else one.uid < other.uid


def age(time: str | None) -> float | None:
    return None if time is None else (NOW - parse_time(time)).total_seconds()


def younger(one: Pod, other: Pod, *ages: tuple[float | None, float | None]) -> bool | None:
    for mine, its in ages:
        if mine is None or its is None:
            return None if mine is its else mine is None
        if mine != its:
            powers = [math.floor(math.log2(age * 1e9)) if age > 0 else -1 for age in (mine, its)]
            return powers[0] < powers[1] if powers[0] != powers[1] else one.uid < other.uid
    return None


@given(st.lists(_aged, unique_by=lambda p: p.uid, min_size=2, max_size=6))
def test_the_ranking_is_that_of_the_comparisons_unless_they_form_a_circle(candidates):
    crowd = Counter(one.spec.node_name for one in candidates)
    wins = {one.uid: sum(goes_before(one, other, crowd) for other in candidates) for one in candidates}
    assume(len(set(wins.values())) == len(candidates))
    expected = sorted(candidates, key=lambda one: -wins[one.uid])
    assert rules.rank_for_deletion(candidates, candidates, NOW) == expected
