import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.planning import rollout

percents = st.integers(0, 100).map(lambda number: f"{number}%")


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "expected"),
    [
        ("25%", "25%", 10, (3, 2)),
        (0, "1%", 10, (0, 1)),
        (0, 0, 10, (0, 1)),
        (None, None, 3, (0, 1)),
        ("1%", 0, 1, (1, 0)),
        (5, 2, 3, (5, 2)),
        ("100%", "100%", 4, (4, 4)),
        ("25%", "25%", 0, (0, 1)),
    ],
)
def test_fenceposts(surge, unavailable, desired, expected):
    assert rollout.fenceposts(surge, unavailable, desired) == expected


@given(percents, percents, st.integers(0, 1000))
def test_a_rollout_can_always_move(surge, unavailable, desired):
    more, fewer = rollout.fenceposts(surge, unavailable, desired)
    assert more + fewer >= 1
    assert more <= desired
    assert fewer <= max(1, desired)


@given(percents, st.integers(0, 1000))
def test_the_rounding_of_each_kind(percent, desired):
    exact = int(percent[:-1]) * desired / 100
    assert 0 <= rollout.rounded_up(percent, desired) - exact < 1
    assert rollout.at_least_one(percent, desired) == max(1, int(exact))


def test_absent_values():
    assert rollout.rounded_up(None, 5) == 0
    assert rollout.at_least_one(None, 5) == 1
