"""Comparison of lists, whose results are kept."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.apply import compare
from kcm_cli.sandbox.apiserver.apply.compare import Comparer
from kcm_cli.sandbox.apiserver.apply.elements import NoElement
from kcm_cli.sandbox.apiserver.schema import Schemas, Target

POD = Schemas().node(Target("", "v1", "Pod"))
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from("AB")}, optional={"status": st.sampled_from(["", "True", 1, True, 1.0, None])}
    ),
    max_size=3,
)


def status(conditions):
    return {"status": {"conditions": conditions}}


def compared(comparer, old, new):
    changes = comparer.compare(POD, status(old), status(new))
    return changes.added, changes.modified, changes.removed


@given(st.lists(st.tuples(CONDITIONS, CONDITIONS), max_size=4))
def test_lists_that_were_compared_before_have_the_same_changes(pairs):
    comparer = Comparer()
    for old, new in pairs + pairs:
        found = compared(comparer, old, new)
        assert found == compared(Comparer(), copy.deepcopy(old), copy.deepcopy(new))
        for part in found:
            part.clear()


def test_results_are_limited_in_number_and_size():
    comparer = Comparer()
    for number in range(2 * compare._KEPT_LISTS):
        compared(comparer, [{"type": "A"}], [{"type": f"{number}"}])
    size = len(comparer._known)
    assert 0 < size <= compare._KEPT_LISTS
    compared(comparer, [{"type": "A"}], [{"type": "A", "message": "x" * compare._LONGEST}])
    assert len(comparer._known) == size


def test_a_list_with_a_null_fails_each_time():
    comparer = Comparer()
    for _ in range(2):
        with pytest.raises(NoElement):
            compared(comparer, [{"type": "A"}], [None])
