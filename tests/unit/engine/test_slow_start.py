import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.engine.execute import batches


@pytest.mark.parametrize(
    ("count", "most", "sizes"),
    [(0, None, []), (1, None, [1]), (3, None, [1, 2]), (10, None, [1, 2, 4, 3]), (10, 3, [1, 2, 3, 3, 1])],
)
def test_sizes(count, most, sizes):
    assert [len(batch) for batch in batches(range(count), most)] == sizes


@given(st.lists(st.integers()), st.none() | st.integers(1, 9))
def test_everything_once_in_order(items, most):
    assert [item for batch in batches(items, most) for item in batch] == items
