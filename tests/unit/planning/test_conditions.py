import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Condition
from kcm_cli.planning import conditions

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def condition(type_, status="True", reason="R", message="M", time=EARLY):
    return Condition(type_, status, reason, message, last_transition_time=time)


A, B = condition("A"), condition("B")


@pytest.mark.parametrize(
    ("new", "moved", "updated"),
    [
        (condition("A", time=LATE), (A, B), (A, B)),
        (condition("A", message="N", time=LATE), (A, B), (condition("A", message="N"), B)),
        (
            condition("A", reason="S", time=LATE),
            (B, condition("A", reason="S")),
            (condition("A", reason="S"), B),
        ),
        (
            condition("A", status="False", time=LATE),
            (B, condition("A", status="False", time=LATE)),
            (condition("A", status="False", time=LATE), B),
        ),
        (condition("C", time=LATE), (A, B, condition("C", time=LATE)), (A, B, condition("C", time=LATE))),
    ],
    ids=["same", "message", "reason", "status", "new"],
)
def test_setting(new, moved, updated):
    assert conditions.moved((A, B), new) == moved
    assert conditions.updated((A, B), new) == updated


def test_unchanged_conditions_are_the_same_object():
    current = (A, B)
    assert conditions.moved(current, condition("A", message="N", time=LATE)) is current
    assert conditions.updated(current, condition("A", time=LATE)) is current
    assert conditions.removed(current, "C") is current
    assert conditions.removed(current, "A") == (B,)


def test_finding():
    assert conditions.find((A, B), "B") is B
    assert conditions.find((A,), "B") is None
    assert conditions.is_true((A,), "A")
    assert not conditions.is_true((condition("A", status="False"),), "A")
    assert not conditions.is_true((), "A")


_conditions = st.builds(
    condition, st.sampled_from("AB"), st.sampled_from(["True", "False"]), st.sampled_from("RS"), st.sampled_from("MN")
)


@given(st.lists(_conditions, unique_by=lambda c: c.type).map(tuple), _conditions)
def test_a_condition_of_a_type_with_a_status(current, new):
    for result in (conditions.moved(current, new), conditions.updated(current, new)):
        assert [c.status for c in result if c.type == new.type] == [new.status]
        assert len({c.type for c in result}) == len(result)
