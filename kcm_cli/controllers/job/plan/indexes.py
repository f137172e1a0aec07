"""Sets of completion indexes as sorted intervals: 100,000 completed indexes in a row are one pair of numbers.

Guarantees: intervals are sorted, and neither overlap nor touch. The text form is that of ``status.completedIndexes``
(two neighbours are written "0,1", three or more "0-2").

upstream: pkg/controller/job/indexed_job_utils.go
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from kcm_cli.machinery.integers import parse_int64

Interval = tuple[int, int]
"""First and last index, both included."""

_PARSED = 64
_BEHIND_ALL = 1 << 62


class Indexes:
    """An immutable set of indexes. upstream: orderedIntervals."""

    def __init__(self, intervals: tuple[Interval, ...] = ()) -> None:
        self.intervals = intervals

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexes) and self.intervals == other.intervals

    def __hash__(self) -> int:
        return hash(self.intervals)

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self.intervals, (index, _BEHIND_ALL)) - 1
        return position >= 0 and self.intervals[position][1] >= index

    def __repr__(self) -> str:
        return f"Indexes({self})"

    @cached_property
    def total(self) -> int:
        """The number of indexes."""
        return sum(last - first + 1 for first, last in self.intervals)

    @cached_property
    def text(self) -> str:
        """The text form, as in the status."""
        return ",".join(_shown(first, last) for first, last in self.intervals)

    def __str__(self) -> str:
        return self.text

    def with_indexes(self, indexes: Iterable[int]) -> "Indexes":
        """The set with these indexes added, which may be in any order."""
        return self.union(Indexes(_merged((index, index) for index in sorted(indexes))))

    def union(self, other: "Indexes") -> "Indexes":
        if not other.intervals:
            return self
        if not self.intervals:
            return other
        return Indexes(_merged(_in_order(self.intervals, other.intervals)))

    def overlap(self, other: "Indexes") -> int:
        """The number of indexes that are in both sets."""
        left, right = self.intervals, other.intervals
        count = i = j = 0
        while i < len(left) and j < len(right):
            shared = min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]) + 1
            count += max(0, shared)
            if left[i][1] <= right[j][1]:
                i += 1
            else:
                j += 1
        return count

    def first_missing(self, count: int, limit: int) -> list[int]:
        """The lowest ``count`` indexes below ``limit`` that are not in the set. Its cost depends on intervals and
        ``count`` only."""
        missing: list[int] = []
        candidate = 0
        for first, last in self.intervals:
            if len(missing) >= count or candidate >= limit:
                break
            missing.extend(range(candidate, min(first, limit, candidate + count - len(missing))))
            candidate = max(candidate, last + 1)
        missing.extend(range(candidate, max(candidate, min(limit, candidate + count - len(missing)))))
        return missing


NONE = Indexes()


@lru_cache(maxsize=_PARSED)
def parse(text: str, completions: int) -> Indexes:
    """The indexes below ``completions`` in a text form. Parts that are not numbers are skipped."""
    found: list[Interval] = []
    for part in text.split(",") if text else ():
        limits = part.split("-")
        first = parse_int64(limits[0])
        if first is None:
            continue
        if first >= completions:
            break
        last = parse_int64(limits[1]) if len(limits) > 1 else first
        if last is not None and last >= first:
            found.append((first, min(last, completions - 1)))
    found.sort()
    return Indexes(_merged(found)) if found else NONE


def _shown(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _in_order(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> Iterator[Interval]:
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            yield left[i]
            i += 1
        else:
            yield right[j]
            j += 1
    yield from left[i:]
    yield from right[j:]


def _merged(ordered: Iterable[Interval]) -> tuple[Interval, ...]:
    """Intervals sorted by their first index; those that overlap or touch are joined."""
    result: list[Interval] = []
    for first, last in ordered:
        if result and first <= result[-1][1] + 1:
            if last > result[-1][1]:
                result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return tuple(result)
