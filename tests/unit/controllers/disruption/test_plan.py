"""The number of pods of a budget that can be evicted: tables and properties."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import PODS, Condition, Pod
from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS, PodDisruptionBudget
from kcm_cli.controllers.disruption import plan
from kcm_cli.controllers.disruption.plan import Snapshot
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import LabelSelector, LabelSelectorRequirement
from kcm_cli.machinery.times import format_time

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return format_time(NOW + timedelta(seconds=seconds))


def budget(status: dict[str, Any] | None = None, **spec: Any) -> PodDisruptionBudget:
    metadata = {"name": "b", "namespace": "ns", "uid": "u", "generation": 3}
    spec = {"selector": {"matchLabels": {"app": "web"}}} | spec
    return POD_DISRUPTION_BUDGETS.decode(codec.encode({"metadata": metadata, "spec": spec, "status": status or {}}))


def pod(
    name: str, *, ready: bool = True, deleting: bool = False, phase: str = "Running", made: str = "", **target: str
) -> Pod:
    """A pod; ``target`` are the fields of its DisruptionTarget condition."""
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": {"app": "web"}}
    if made:
        metadata["creationTimestamp"] = made
    if deleting:
        metadata["deletionTimestamp"] = at(0)
    conditions = [{"type": "Ready", "status": str(ready)}]
    if target:
        conditions.append({"type": "DisruptionTarget"} | target)
    doc = {"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": conditions}}
    return PODS.decode(codec.encode(doc))


def pods(healthy: int, sick: int = 0) -> tuple[Pod, ...]:
    return tuple(pod(f"h{n}") for n in range(healthy)) + tuple(pod(f"s{n}", ready=False) for n in range(sick))


@pytest.mark.parametrize(
    ("spec", "depends"),
    [
        pytest.param({}, False, id="neither"),
        pytest.param({"minAvailable": 2}, False, id="a number that stay"),
        pytest.param({"minAvailable": "50%"}, True, id="a share that stays"),
        pytest.param({"maxUnavailable": 2}, True, id="a number that may go"),
        pytest.param({"maxUnavailable": "50%"}, True, id="a share that may go"),
    ],
)
def test_budgets_that_depend_on_the_scale(spec: dict[str, Any], depends: bool) -> None:
    assert plan.depends_on_scale(budget(**spec)) is depends


@pytest.mark.parametrize(
    ("spec", "count", "scale", "expected"),
    [
        pytest.param({}, 3, 0, (0, 0), id="neither"),
        pytest.param({"minAvailable": 2}, 3, 0, (3, 2), id="minAvailable, number: of the pods that are there"),
        pytest.param({"minAvailable": 5}, 3, 0, (3, 5), id="minAvailable, more than there are"),
        pytest.param({"minAvailable": 0}, 3, 0, (3, 0), id="minAvailable, none"),
        pytest.param({"minAvailable": "50%"}, 3, 5, (5, 3), id="minAvailable, share: of the scale, rounded up"),
        pytest.param({"minAvailable": "28%"}, 3, 7, (7, 2), id="minAvailable, 1.96 is two"),
        pytest.param({"minAvailable": "1%"}, 3, 7, (7, 1), id="minAvailable, 0.07 is one"),
        pytest.param({"minAvailable": "0%"}, 3, 7, (7, 0), id="minAvailable, no share"),
        pytest.param({"minAvailable": "100%"}, 3, 7, (7, 7), id="minAvailable, all"),
        pytest.param({"maxUnavailable": 2}, 3, 5, (5, 3), id="maxUnavailable, number"),
        pytest.param({"maxUnavailable": 9}, 3, 5, (5, 0), id="maxUnavailable, more than there are"),
        pytest.param({"maxUnavailable": 0}, 3, 5, (5, 5), id="maxUnavailable, none"),
        pytest.param({"maxUnavailable": "30%"}, 3, 5, (5, 3), id="maxUnavailable, 1.5 is two"),
        pytest.param({"maxUnavailable": "1%"}, 3, 5, (5, 4), id="maxUnavailable, 0.05 is one"),
        pytest.param({"maxUnavailable": "100%"}, 3, 5, (5, 0), id="maxUnavailable, all"),
        pytest.param({"maxUnavailable": "30%"}, 0, 0, (0, 0), id="maxUnavailable of nothing"),
    ],
)
def test_expected(spec: dict[str, Any], count: int, scale: int, expected: tuple[int, int]) -> None:
    assert plan.expected(Snapshot(budget(**spec), pods(count), scale)) == expected


@pytest.mark.parametrize("spec", [{"minAvailable": "two"}, {"maxUnavailable": "10"}], ids=["min", "max"])
def test_invalid_percentages(spec: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="invalid"):
        plan.expected(Snapshot(budget(**spec), pods(3), 3))


@pytest.mark.parametrize(
    ("spec", "shown", "scale", "expected"),
    [
        pytest.param({"minAvailable": 2}, pods(3), 0, (3, 1), id="one to spare"),
        pytest.param({"minAvailable": 2}, pods(2, 1), 0, (2, 0), id="sick ones do not count"),
        pytest.param({"minAvailable": 2}, pods(0, 3), 0, (0, 0), id="too few"),
        pytest.param({"minAvailable": 0}, (), 0, (0, 0), id="no pods"),
        pytest.param({"minAvailable": 0}, pods(2), 0, (2, 2), id="all may go"),
        pytest.param({"maxUnavailable": 1}, pods(3), 3, (3, 1), id="may go"),
        pytest.param({"maxUnavailable": 1}, pods(3), 4, (3, 0), id="one is missing already"),
        pytest.param({"maxUnavailable": 5}, pods(3), 0, (3, 0), id="nothing is expected"),
        pytest.param({"maxUnavailable": "50%"}, pods(5), 3, (5, 4), id="more than desired"),
        pytest.param({}, pods(5), 0, (5, 0), id="an empty budget allows nothing"),
        pytest.param({"minAvailable": 1}, (*pods(1), pod("d", deleting=True)), 0, (1, 0), id="one is leaving"),
    ],
)
def test_healthy_and_allowed(
    spec: dict[str, Any], shown: tuple[Pod, ...], scale: int, expected: tuple[int, int]
) -> None:
    found = plan.status(Snapshot(budget(**spec), shown, scale), {}, NOW)
    assert (found.current_healthy, found.disruptions_allowed) == expected
    (condition,) = found.conditions
    allowed = found.disruptions_allowed > 0
    assert condition.status == str(allowed)
    assert condition.reason == ("SufficientPods" if allowed else "InsufficientPods")
    assert (found.observed_generation, condition.observed_generation) == (3, 3)


# -- evictions that were granted


@pytest.mark.parametrize(
    ("granted", "shown", "pending", "overdue", "recheck_s"),
    [
        pytest.param({}, pods(2), set(), set(), None, id="none"),
        pytest.param({"h0": at(0)}, pods(2), {"h0"}, set(), 120, id="just now"),
        pytest.param({"h0": at(-119)}, pods(2), {"h0"}, set(), 1, id="a while ago"),
        pytest.param({"h0": at(-120)}, pods(2), set(), {"h0"}, None, id="too long ago"),
        pytest.param({"h0": at(-900)}, pods(2), set(), {"h0"}, None, id="long ago"),
        pytest.param({"gone": at(0)}, pods(2), set(), set(), None, id="the pod is deleted"),
        pytest.param({"d": at(0)}, (*pods(1), pod("d", deleting=True)), set(), set(), None, id="on its way"),
        pytest.param({"d": at(-20)}, (*pods(1), pod("d", made=at(-20))), {"d"}, set(), 100, id="no later"),
        pytest.param({"d": at(-20)}, (*pods(1), pod("d", made=at(-19))), set(), set(), None, id="created again"),
        pytest.param({"h0": at(-20), "h1": at(-60)}, pods(2), {"h0", "h1"}, set(), 60, id="the first to run out"),
        pytest.param({"h0": at(-20), "h1": at(-600)}, pods(2), {"h0"}, {"h1"}, 100, id="one of two ran out"),
    ],
)
def test_pending_evictions(
    granted: dict[str, str], shown: tuple[Pod, ...], pending: set[str], overdue: set[str], recheck_s: float | None
) -> None:
    found = plan.plan(Snapshot(budget({"disruptedPods": granted}, minAvailable=1), shown), NOW)
    assert set(found.pending) == pending
    assert {pod.name for pod in found.overdue} == overdue
    assert found.recheck_s == recheck_s
    assert {name: granted[name] for name in pending} == found.pending


def test_a_pod_with_a_pending_eviction_is_not_healthy() -> None:
    found = plan.status(Snapshot(budget(minAvailable=1), pods(3)), {"h0": at(0)}, NOW)
    assert (found.current_healthy, found.disruptions_allowed, found.disrupted_pods) == (2, 1, {"h0": at(0)})


def test_an_equal_status_is_not_written() -> None:
    first = plan.status(Snapshot(budget(minAvailable=1), pods(3)), {}, NOW)
    same = POD_DISRUPTION_BUDGETS.decode(
        codec.encode({"metadata": {"name": "b", "generation": 3}, "spec": {"minAvailable": 1}, "status": first})
    )
    assert plan.status(Snapshot(same, pods(3)), {}, NOW + timedelta(hours=1)) == first


def test_a_failure_allows_no_disruption_and_keeps_the_other_fields() -> None:
    known = {"disruptionsAllowed": 4, "currentHealthy": 5, "observedGeneration": 2, "disruptedPods": {"p": at(0)}}
    found = plan.failed_status(budget(known, minAvailable=1), "no scale", NOW)
    assert (found.disruptions_allowed, found.current_healthy, found.observed_generation) == (0, 5, 2)
    assert found.disrupted_pods == {"p": at(0)}
    (condition,) = found.conditions
    expected = ("DisruptionAllowed", "False", "SyncFailed", "no scale", 2)
    assert (condition.type, condition.status, condition.reason, condition.message, condition.observed_generation) == (
        expected
    )


def test_recovery_from_a_failure_clears_its_message() -> None:
    failed = plan.failed_status(budget(minAvailable=5), "no scale", NOW)
    again = budget({"conditions": [codec.decode_doc(codec.encode(c)) for c in failed.conditions]}, minAvailable=5)
    (condition,) = plan.status(Snapshot(again, pods(3)), {}, NOW).conditions
    assert (condition.status, condition.reason, condition.message) == ("False", "InsufficientPods", "")


# -- announced disruptions that did not happen

RECENT = {"status": "True", "lastTransitionTime": at(-20)}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(pod("p"), None, id="none"),
        pytest.param(pod("p", **RECENT), 100.0, id="recent"),
        pytest.param(pod("p", status="True", lastTransitionTime=at(-120)), 0.0, id="just stale"),
        pytest.param(pod("p", status="True", lastTransitionTime=at(-999)), 0.0, id="stale"),
        pytest.param(pod("p", status="True"), 0.0, id="without a time"),
        pytest.param(pod("p", status="False", lastTransitionTime=at(-999)), None, id="taken back already"),
        pytest.param(pod("p", deleting=True, **RECENT), None, id="it happens"),
        pytest.param(pod("p", phase="Failed", **RECENT), None, id="failed"),
        pytest.param(pod("p", phase="Succeeded", **RECENT), None, id="succeeded"),
        pytest.param(pod("p", reason="TerminationByKubelet", **RECENT), None, id="the kubelet's takes its time"),
        pytest.param(pod("p", reason="EvictionByEvictionAPI", **RECENT), 100.0, id="the eviction API's does not"),
    ],
)
def test_stale_conditions(shown: Pod, expected: float | None) -> None:
    assert plan.stale_in_s(shown, NOW) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, "nil", id="absent"),
        pytest.param(
            LabelSelector({"b": "2", "a": "1"}, (LabelSelectorRequirement("k", "In", ("x", "y")),)),
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement"
            "{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}",
            id="labels and expressions",
        ),
    ],
)
def test_the_selector_in_the_warning(selector: LabelSelector | None, expected: str) -> None:
    assert f"(selector: {expected})" in plan.unmanaged_text(selector)


# -- properties

amounts = st.one_of(st.integers(0, 12), st.integers(0, 100).map("{}%".format))
specs = st.one_of(
    st.builds(lambda value: {"minAvailable": value}, amounts),
    st.builds(lambda value: {"maxUnavailable": value}, amounts),
)
states = st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, -500, -119, 0])), max_size=12)


@given(specs, states, st.integers(0, 12))
def test_allowed_disruptions_keep_the_desired_healthy_pods(
    spec: dict[str, Any], shown: list[tuple[bool, bool, int | None]], scale: int
) -> None:
    """Even if all that is allowed and all that was granted happens, the desired number stays healthy."""
    found = tuple(pod(f"p{n}", ready=ready, deleting=gone) for n, (ready, gone, _) in enumerate(shown))
    granted = {f"p{n}": at(since) for n, (_, _, since) in enumerate(shown) if since is not None}
    snapshot = Snapshot(budget({"disruptedPods": granted}, **spec), found, scale)
    under_way = plan.plan(snapshot, NOW)
    status = plan.status(snapshot, under_way.pending, NOW)
    left = sum(ready and not gone and f"p{n}" not in under_way.pending for n, (ready, gone, _) in enumerate(shown))
    assert status.disruptions_allowed >= 0
    assert status.disruptions_allowed == 0 or left - status.disruptions_allowed >= status.desired_healthy
    assert under_way.recheck_s is None or 0 < under_way.recheck_s <= plan.DELETION_TIMEOUT_S
    names = {pod.name for pod in under_way.overdue}
    assert not names & set(under_way.pending)


@given(st.integers(1, 200), st.integers(0, 100))
def test_percentages_are_rounded_up(scale: int, share: int) -> None:
    """At least that share stays of minAvailable; of maxUnavailable less than one pod more than it may go."""
    _, desired = plan.expected(Snapshot(budget(minAvailable=f"{share}%"), (), scale))
    assert scale * share / 100 <= desired < scale * share / 100 + 1
    _, desired = plan.expected(Snapshot(budget(maxUnavailable=f"{share}%"), (), scale))
    assert scale * share / 100 <= scale - desired < scale * share / 100 + 1


def test_other_conditions_are_kept() -> None:
    other = {"type": "Other", "status": "True"}
    found = plan.status(Snapshot(budget({"conditions": [other]}, minAvailable=1), pods(1)), {}, NOW)
    assert found.conditions[0] == Condition("Other", "True")
