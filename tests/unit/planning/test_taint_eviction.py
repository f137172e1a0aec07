"""Times of evictions from tainted nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Node, NodeSpec, Taint, Toleration
from kcm_cli.planning.taint_eviction import Leave, executing, plan

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
