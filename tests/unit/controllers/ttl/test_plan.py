"""The TTL for caches of kubelets, by the number of nodes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.controllers.ttl.plan import next_step, plan


@pytest.mark.parametrize(
    ("nodes", "growing", "shrinking"),
    [
        pytest.param(0, 0, 0, id="none"),
        pytest.param(89, 0, 0, id="89"),
        pytest.param(90, 0, 15, id="90"),
        pytest.param(100, 0, 15, id="100"),
        pytest.param(101, 15, 15, id="101"),
        pytest.param(449, 15, 15, id="449"),
        pytest.param(450, 15, 30, id="450"),
        pytest.param(500, 15, 30, id="500"),
        pytest.param(501, 30, 30, id="501"),
        pytest.param(899, 30, 30, id="899"),
        pytest.param(900, 30, 60, id="900"),
        pytest.param(1001, 60, 60, id="1001"),
        pytest.param(1800, 60, 300, id="1800"),
        pytest.param(2000, 60, 300, id="2000"),
        pytest.param(2001, 300, 300, id="2001"),
        pytest.param(5000, 300, 300, id="5000"),
    ],
)
def test_steps(nodes: int, growing: int, shrinking: int) -> None:
    """A cluster that grows to this size and one that shrinks to it: at the borders they differ."""
    assert plan(None, next_step(0, nodes)) == growing
    step = 0
    for size in (*range(0, 6000), *range(6000, nodes - 1, -1)):
        step = next_step(step, size)
    assert plan(None, step) == shrinking


@given(st.lists(st.integers(0, 3000), min_size=2, max_size=20))
def test_an_unchanged_size_changes_nothing(sizes: list[int]) -> None:
    step = 0
    for size in sizes:
        step = next_step(step, size)
        assert next_step(step, size) == step


@given(st.integers(0, 2500), st.lists(st.integers(-5, 5), max_size=50))
def test_small_changes_change_it_once_at_most(start: int, moves: list[int]) -> None:
    """The ranges overlap by more than this: no flapping at a border."""
    steps = [next_step(0, start)]
    for move in moves:
        steps.append(next_step(steps[-1], max(0, start + move)))
    assert len(list(itertools.groupby(steps))) <= 2


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(None, True, id="absent"),
        pytest.param("15", False, id="same"),
        pytest.param("+15", False, id="same, signed"),
        pytest.param("015", False, id="same, with a zero"),
        pytest.param("30", True, id="another"),
        pytest.param("", True, id="empty"),
        pytest.param("1" * 5000, True, id="more digits than Python reads"),
        pytest.param("x", True, id="no number"),
        pytest.param("1_5", True, id="no number to others"),
        pytest.param(" 15", True, id="with a space"),
    ],
)
def test_differs(annotation: str | None, expected: bool) -> None:
    assert plan(annotation, next_step(0, 101)) == (15 if expected else None)
