from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.controllers.job.plan.indexes import NONE, Indexes, parse
from tests.kit.growth import grows_less

SMALL = st.sets(st.integers(0, 40))


def of(indexes: set[int]) -> Indexes:
    return NONE.with_indexes(indexes)


def members(indexes: Indexes) -> set[int]:
    return {index for first, last in indexes.intervals for index in range(first, last + 1)}


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param(set(), "", id="none"),
        pytest.param({4}, "4", id="one"),
        pytest.param({0, 1}, "0,1", id="two neighbours are no range"),
        pytest.param({0, 1, 2}, "0-2", id="three are"),
        pytest.param({0, 1, 3, 5, 6, 7, 9}, "0,1,3,5-7,9", id="mixed"),
    ],
)
def test_text(indexes: set[int], text: str) -> None:
    assert of(indexes).text == text


@pytest.mark.parametrize(
    ("text", "completions", "expected"),
    [
        pytest.param("", 5, set(), id="empty"),
        pytest.param("0-2,4", 9, {0, 1, 2, 4}, id="plain"),
        pytest.param("0,1,2", 9, {0, 1, 2}, id="joined"),
        pytest.param("0-8", 5, {0, 1, 2, 3, 4}, id="cut at the completions"),
        pytest.param("1,7", 5, {1}, id="out of range is left out"),
        pytest.param("1,x,3", 9, {1, 3}, id="no number is skipped"),
        pytest.param("1,2-y,3", 9, {1, 3}, id="half a range is skipped"),
        pytest.param(f"1,{'9' * 5000},2-{'9' * 5000},3", 9, {1, 3}, id="an overflow is invalid"),
        pytest.param("5-3,6", 9, {6}, id="backwards is skipped"),
    ],
)
def test_parse(text: str, completions: int, expected: set[int]) -> None:
    assert members(parse(text, completions)) == expected


@given(SMALL)
def test_formatted_indexes_are_parsed(indexes: set[int]) -> None:
    assert parse(of(indexes).text, 100) == of(indexes)


@given(SMALL, SMALL)
def test_behaves_like_a_set(left: set[int], right: set[int]) -> None:
    union = of(left).union(of(right))
    assert members(union) == left | right
    assert union == of(left).with_indexes(right) == of(left | right)
    assert union.total == len(left | right)
    assert of(left).overlap(of(right)) == len(left & right)
    assert {index for index in range(50) if index in union} == left | right


@given(SMALL, SMALL)
def test_intervals_neither_overlap_nor_touch(left: set[int], right: set[int]) -> None:
    intervals = of(left).union(of(right)).intervals
    assert all(first <= last for first, last in intervals)
    assert all(one[1] + 1 < other[0] for one, other in zip(intervals, intervals[1:], strict=False))


@given(SMALL, st.integers(0, 50), st.integers(0, 50))
def test_first_missing(indexes: set[int], count: int, limit: int) -> None:
    expected = [index for index in range(limit) if index not in indexes][:count]
    assert of(indexes).first_missing(count, limit) == expected


def test_the_cost_depends_on_intervals_only() -> None:
    def rounds(last: int) -> Callable[[], None]:
        done = of(set(range(100 * last)) - {70 * last})

        def run() -> None:
            for index in range(100):
                grown = done.with_indexes({index})
                assert grown.total == 100 * last - 1
                assert grown.first_missing(10, 100 * last) == [70 * last]
                assert parse(grown.text, 100 * last) == grown

        return run

    assert grows_less(rounds, 100, 5)
