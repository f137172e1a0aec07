"""Times of evictions from tainted nodes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Condition, Node, NodeSpec, Pod, PodStatus, Taint, Toleration
from kcm_cli.controllers.taint_eviction.plan import Leave, executing, left_s, plan

A, B = Taint("a", "1", "NoExecute"), Taint("b", "", "NoExecute")


def tolerating(key: str, seconds: int | None = None, operator: str = "Exists", value: str = "") -> Toleration:
    return Toleration(key, operator, value, "NoExecute", seconds)


def test_only_no_execute_counts() -> None:
    taints = (A, Taint("c", "", "NoSchedule"), B, Taint("d", "", "PreferNoSchedule"))
    assert executing(Node(spec=NodeSpec(taints=taints))) == (A, B)


NOW = Leave(0.0, tolerated=False)


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([], [], None, id="no taints"),
        pytest.param([A], [], NOW, id="not tolerated"),
        pytest.param([A], [tolerating("a")], None, id="tolerated for ever"),
        pytest.param([A], [tolerating("b")], NOW, id="another key"),
        pytest.param([A], [tolerating("a", 60)], Leave(60, tolerated=True), id="for a while"),
        pytest.param([A], [tolerating("a", 0)], Leave(0, tolerated=True), id="for no time"),
        pytest.param([A], [tolerating("a", -5)], Leave(0, tolerated=True), id="for less than no time"),
        pytest.param([A], [tolerating("a", 60, "Equal", "1")], Leave(60, tolerated=True), id="equal"),
        pytest.param([A], [tolerating("a", 60, "Equal", "2")], NOW, id="not equal"),
        pytest.param([A], [tolerating("", 60)], Leave(60, tolerated=True), id="every key"),
        pytest.param([A], [Toleration("a", "Exists", "", "NoSchedule")], NOW, id="another effect"),
        pytest.param([A], [Toleration("a", "Exists")], None, id="every effect"),
        pytest.param([A, B], [tolerating("a", 60)], NOW, id="one of two is not tolerated"),
        pytest.param([A, B], [tolerating("a", 60), tolerating("b")], Leave(60, tolerated=True), id="one for ever"),
        pytest.param([A, B], [tolerating("a", 60), tolerating("b", 30)], Leave(30, tolerated=True), id="the shorter"),
        pytest.param([A, B], [tolerating("a"), tolerating("b")], None, id="both for ever"),
        pytest.param([A], [tolerating("a", 60), tolerating("a", 30)], Leave(60, tolerated=True),
                     id="the first that matches counts"),
        pytest.param([A], [tolerating("b", 10), tolerating("a", 60)], Leave(60, tolerated=True),
                     id="those that match nothing do not count"),
    ],
)  # fmt: skip
def test_time_of_eviction(taints: list[Taint], tolerations: list[Toleration], expected: Leave | None) -> None:
    assert plan(taints, tolerations, comparisons=False) == expected


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


@pytest.mark.parametrize(
    ("times", "tolerations", "expected"),
    [
        pytest.param((EARLY, LATE), [tolerating("", 300)], LATE, id="the later one"),
        pytest.param((EARLY, None), [tolerating("", 300)], None, id="one without a time"),
        pytest.param((EARLY, None), [tolerating("a", 300), tolerating("b")], EARLY, id="one tolerated for ever"),
    ],
)
def test_since_when_taints_are_tolerated(times, tolerations: list[Toleration], expected: str | None) -> None:
    taints = [Taint(key, "", "NoExecute", time) for key, time in zip("ab", times, strict=True)]
    assert plan(taints, tolerations, comparisons=False) == Leave(300, tolerated=True, since=expected)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"status": "True", "last_transition_time": EARLY}, 300, id="bound before the taint"),
        pytest.param({"status": "True", "last_transition_time": "2026-01-01T00:06:00Z"}, 360, id="bound after it"),
        pytest.param({"status": "True"}, 600, id="bound at an unknown time"),
        pytest.param({"status": "False", "last_transition_time": EARLY}, 600, id="not bound by a scheduler"),
    ],
)
def test_what_is_left_of_a_toleration(status: dict, expected: float) -> None:
    pod = Pod(status=PodStatus(conditions=(Condition("PodScheduled", **status),)))
    found = Leave(600, tolerated=True, since=LATE)
    now = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
    assert left_s(found, pod, now) == expected
    assert left_s(found, Pod(), now) == 600
    assert left_s(Leave(600, tolerated=True), pod, now) == 600


keys = st.sampled_from(["a", "b", "c", ""])
some = st.lists(st.builds(tolerating, keys, st.one_of(st.none(), st.integers(-5, 300))), max_size=4)


@given(st.lists(st.builds(lambda key: Taint(key, "", "NoExecute"), st.sampled_from("abc")), max_size=4), some)
def test_more_taints_never_delay_an_eviction(taints: list[Taint], tolerations: list[Toleration]) -> None:
    def limit(found: Leave | None) -> float:
        return float("inf") if found is None else found.after_s

    whole = plan(taints, tolerations, comparisons=False)
    for number in range(len(taints)):
        rest = taints[:number] + taints[number + 1 :]
        assert limit(whole) <= limit(plan(rest, tolerations, comparisons=False))
    assert limit(whole) >= 0
    assert plan(list(reversed(taints)), tolerations, comparisons=False) == whole


@pytest.mark.parametrize(("on", "expected"), [(True, None), (False, NOW)], ids=["gate on", "gate off"])
def test_numeric_tolerations_need_their_gate(on: bool, expected: Leave | None) -> None:
    greater = Toleration("a", "Gt", "0", "NoExecute")
    assert plan([A], [greater], comparisons=on) == expected
