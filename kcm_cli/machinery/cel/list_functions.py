"""List functions.

upstream: apiserver pkg/cel/library/lists.go, cel-go ext/lists.go (version 3), ext/sets.go
"""

from collections.abc import Callable, Mapping
from functools import cmp_to_key

from kcm_cli.machinery.cel import operators
from kcm_cli.machinery.cel.overloads import LIST, Function, overloaded
from kcm_cli.machinery.cel.values import NONE, CelError, Duration, Optional, Uint, Value, equal, type_name

_LONGEST = 1_000_000
"""Longer lists would cost more than any expression may."""

_Items = list[Value]


def _compare(one: Value, other: Value) -> int:
    if operators.less(one, other):
        return -1
    return 1 if operators.greater(one, other) else 0


def _is_sorted(items: _Items) -> bool:
    return all(_compare(one, other) <= 0 for one, other in zip(items, items[1:], strict=False))


def _sum(items: _Items) -> Value:
    if not items:
        return 0
    first = items[0]
    zero: Value = 0
    if isinstance(first, Uint):
        zero = Uint(0)
    elif isinstance(first, float):
        zero = 0.0
    elif isinstance(first, Duration):
        zero = Duration()
    for item in items:
        zero = operators.add(zero, item)
    return zero


def _extreme(name: str, wanted: int) -> Callable[[_Items], Value]:
    def run(items: _Items) -> Value:
        if not items:
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if _compare(item, best) == wanted:
                best = item
        return best

    return run


def _index_of(items: _Items, wanted: Value) -> int:
    return next((position for position, item in enumerate(items) if equal(item, wanted)), -1)


def _last_index_of(items: _Items, wanted: Value) -> int:
    return next((p for p in range(len(items) - 1, -1, -1) if equal(items[p], wanted)), -1)


def _slice(items: _Items, start: int, end: int) -> _Items:
    asked = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise CelError(f"{asked}, negative indexes not supported")
    if start > end:
        raise CelError(f"{asked}, start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"{asked}, list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: _Items, depth: int = 1) -> _Items:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: _Items = []
    for item in items:
        if isinstance(item, (list, tuple)) and depth > 0:
            flat += _flatten(list(item), depth - 1)
        else:
            flat.append(item)
    return flat


def _sort(items: _Items) -> _Items:
    if len({type_name(item) for item in items}) > 1:
        raise CelError("list elements must have the same type")
    return sorted(items, key=cmp_to_key(_compare))


def sorted_by(items: _Items, keys: _Items) -> _Items:
    """The items sorted by their keys. Raises CelError."""
    if len({type_name(key) for key in keys}) > 1:
        raise CelError("list elements must have the same type")
    compare = cmp_to_key(_compare)
    return [items[position] for position in sorted(range(len(items)), key=lambda at: compare(keys[at]))]


def _distinct(items: _Items) -> _Items:
    found: _Items = []
    for item in items:
        if not any(equal(item, each) for each in found):
            found.append(item)
    return found


def _holds(items: _Items, wanted: _Items) -> bool:
    return all(any(equal(item, each) for each in items) for item in wanted)


def _intersects(one: _Items, other: _Items) -> bool:
    return any(equal(item, each) for item in one for each in other)


def _range(count: int) -> list[Value]:
    if count > _LONGEST:
        raise CelError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


FUNCTIONS: Mapping[str, Function] = {
    "sets.contains": overloaded("sets.contains", ((LIST, LIST), _holds)),
    "sets.equivalent": overloaded(
        "sets.equivalent", ((LIST, LIST), lambda one, other: _holds(one, other) and _holds(other, one))
    ),
    "sets.intersects": overloaded("sets.intersects", ((LIST, LIST), _intersects)),
    "lists.range": overloaded("lists.range", ((int,), _range)),
}
METHODS: Mapping[str, Function] = {
    "isSorted": overloaded("isSorted", ((LIST,), _is_sorted)),
    "sum": overloaded("sum", ((LIST,), _sum)),
    "min": overloaded("min", ((LIST,), _extreme("min", -1))),
    "max": overloaded("max", ((LIST,), _extreme("max", 1))),
    "indexOf": overloaded("indexOf", ((LIST, object), _index_of)),
    "lastIndexOf": overloaded("lastIndexOf", ((LIST, object), _last_index_of)),
    "slice": overloaded("slice", ((LIST, int, int), _slice)),
    "flatten": overloaded("flatten", ((LIST,), _flatten), ((LIST, int), _flatten)),
    "sort": overloaded("sort", ((LIST,), _sort)),
    "distinct": overloaded("distinct", ((LIST,), _distinct)),
    "reverse": overloaded("reverse", ((LIST,), lambda items: items[::-1])),
    "first": overloaded("first", ((LIST,), lambda items: Optional(items[0], True) if items else NONE)),
    "last": overloaded("last", ((LIST,), lambda items: Optional(items[-1], True) if items else NONE)),
}
