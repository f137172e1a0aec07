"""The operators, for all types.

upstream: cel-go common/types, common/stdlib
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from kcm_cli.machinery.cel.values import (
    INT_MIN,
    AssociativeList,
    CelError,
    Duration,
    Optional,
    Uint,
    Value,
    checked,
    checked_uint,
    equal,
    is_number,
    type_name,
)
from kcm_cli.machinery.go_floats import go_float
from kcm_cli.machinery.times import as_utc

Binary = Callable[[Value, Value], Value]
_COMPARABLE = (str, bytes, bool, datetime, timedelta)


def no_overload(function: str, *args: Value) -> CelError:
    """The error of a function or operator without an overload for these operands."""
    return CelError(f"no such overload: {function}({', '.join(map(type_name, args))})")


_NUMBERS: tuple[type, ...] = (int, float)
_KNOWN: Mapping[str, tuple[type, ...]] = {
    "_+_": (*_NUMBERS, str, bytes, list, tuple, timedelta, datetime),
    "_-_": (*_NUMBERS, timedelta, datetime),
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": (int,),
}


def _refused(function: str, one: Value, other: Value) -> CelError:
    """The error of an operator. It has no details if the first operand's type has the operator."""
    known = _KNOWN.get(function)
    if known is None:
        knows = is_number(one) or isinstance(one, _COMPARABLE)
    else:
        knows = isinstance(one, known) and not isinstance(one, bool)
    return CelError("no such overload") if knows else no_overload(function, one, other)


def _arithmetic(one: Value, other: Value) -> type | None:
    """The common type of two numbers; None if they cannot be combined."""
    for kind in (Uint, float, int):
        if isinstance(one, kind) and not isinstance(one, bool):
            fits = isinstance(other, kind) and not isinstance(other, bool)
            return kind if fits and isinstance(one, Uint) == isinstance(other, Uint) else None
    return None


def _bounded(kind: type, value: int | float) -> Value:
    if kind is Uint:
        return checked_uint(int(value))
    return checked(int(value)) if kind is int else value


def add(one: Value, other: Value) -> Value:
    """``_+_``"""
    kind = _arithmetic(one, other)
    if kind is not None:
        return _bounded(kind, one + other)  # type: ignore[operator]  # both are numbers of this kind
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return one.plus(other) if isinstance(one, AssociativeList) else [*one, *other]
    if isinstance(one, bytes) and isinstance(other, bytes):
        return one + other
    if isinstance(one, timedelta) and isinstance(other, timedelta):
        return Duration.of(one + other)
    if isinstance(one, datetime) and isinstance(other, timedelta):
        return _moved(one, other)
    if isinstance(one, timedelta) and isinstance(other, datetime):
        return _moved(other, one)
    raise _refused("_+_", one, other)


def subtract(one: Value, other: Value) -> Value:
    """``_-_``"""
    kind = _arithmetic(one, other)
    if kind is not None:
        return _bounded(kind, one - other)  # type: ignore[operator]  # both are numbers of this kind
    if isinstance(one, timedelta) and isinstance(other, timedelta):
        return Duration.of(one - other)
    if isinstance(one, datetime) and isinstance(other, timedelta):
        return _moved(one, -other)
    if isinstance(one, datetime) and isinstance(other, datetime):
        return Duration.of(one - other)
    raise _refused("_-_", one, other)


def _moved(moment: datetime, delta: timedelta) -> datetime:
    """The time after this duration, in its own zone if it can be written there. Its range is that of UTC."""
    try:
        moved = as_utc(moment) + delta
    except OverflowError:
        raise CelError("timestamp overflow") from None
    try:
        return moved.astimezone(moment.tzinfo)
    except OverflowError:
        return moved


def multiply(one: Value, other: Value) -> Value:
    """``_*_``"""
    kind = _arithmetic(one, other)
    if kind is None:
        raise _refused("_*_", one, other)
    return _bounded(kind, one * other)  # type: ignore[operator]  # both are numbers of this kind


def divide(one: Value, other: Value) -> Value:
    """``_/_``. Integer quotients are truncated towards zero."""
    kind = _arithmetic(one, other)
    if kind is None:
        raise _refused("_/_", one, other)
    assert isinstance(one, (int, float)) and isinstance(other, (int, float))
    if kind is float:
        return _float_quotient(float(one), float(other))
    if other == 0:
        raise CelError("division by zero")
    quotient = abs(int(one)) // abs(int(other))
    return _bounded(kind, quotient if (one < 0) == (other < 0) else -quotient)


def _float_quotient(one: float, other: float) -> float:
    if other:
        return one / other
    return float("nan") if not one or one != one else float("inf") * (1 if one > 0 else -1)


def modulus(one: Value, other: Value) -> Value:
    """``_%_``, with the sign of the first operand."""
    kind = _arithmetic(one, other)
    if kind is None or kind is float:
        raise _refused("_%_", one, other)
    assert isinstance(one, int) and isinstance(other, int)
    if other == 0:
        raise CelError("modulus by zero")
    rest = abs(one) % abs(other)
    return _bounded(kind, rest if one >= 0 else -rest)


def negate(value: Value) -> Value:
    """``-_``"""
    if isinstance(value, float):
        return -value
    if isinstance(value, int) and not isinstance(value, bool | Uint):
        if value == INT_MIN:
            raise CelError("integer overflow")
        return -value
    if isinstance(value, timedelta):
        return Duration.of(-value)
    raise no_overload("-_", value)


def logical_not(value: Value) -> Value:
    """``!_``"""
    if isinstance(value, bool):
        return not value
    raise no_overload("!_", value)


def _ordered(function: str, test: Callable[[int], bool]) -> Binary:
    def compare(one: Value, other: Value) -> Value:
        order = _order(one, other)
        if order is None:
            raise _refused(function, one, other)
        return test(order)

    return compare


def _order(one: Value, other: Value) -> int | None:
    """Less than, equal to or greater than zero; None if the values cannot be compared. NaN is greater than all
    numbers."""
    if is_number(one) and is_number(other):
        return 0 if one == other else -1 if one < other else 1  # type: ignore[operator]  # numbers
    for kind in _COMPARABLE:
        if isinstance(one, kind):
            if not isinstance(other, kind):
                return None
            return (one > other) - (one < other)  # type: ignore[operator]  # both of a kind with an order
    compare = getattr(one, "cel_compare", None)
    return None if compare is None else compare(other)


less = _ordered("_<_", lambda order: order < 0)
less_equal = _ordered("_<=_", lambda order: order <= 0)
greater = _ordered("_>_", lambda order: order > 0)
greater_equal = _ordered("_>=_", lambda order: order >= 0)


def contained(item: Value, where: Value) -> Value:
    """``@in``"""
    if isinstance(where, (list, tuple)):
        return any(equal(item, each) for each in where)
    if isinstance(where, Mapping):
        return find(where, item)[0]
    raise CelError("no such overload")


def find(where: Mapping[Value, Value], key: Value) -> tuple[bool, Value]:
    """(whether a map has a key, its value). Numbers are found by value; a bool is not a number."""
    if isinstance(key, (list, dict, tuple)):
        return False, None
    if key in where and (isinstance(key, str) or _same_key(where, key)):
        return True, where[key]
    return False, None


def _same_key(where: Mapping[Value, Value], key: Value) -> bool:
    """Whether the map has the key in CEL's sense. Python treats True and 1 as the same key."""
    return any(equal(each, key) for each in where)


def index(where: Value, key: Value) -> Value:
    """``_[_]``. Raises CelError if there is no such element."""
    if isinstance(where, Optional):
        return optional_index(where, key)
    if isinstance(where, Mapping):
        present, value = find(where, key)
        if present:
            return value
        if isinstance(where, defaultdict) and where.default_factory is not None:
            return where.default_factory()  # a map that has something for every key
        raise CelError(f"no such key: {shown(key)}")
    if isinstance(where, (list, tuple)):
        position = _position(key)
        if not 0 <= position < len(where):
            raise CelError(f"index out of bounds: {position}")
        return where[position]
    raise no_element(where, key)


def no_element(where: Value, key: Value) -> CelError:
    """The error of a field or index that a value of this type never has.

    upstream: cel-go interpreter/attributes.go#refQualify
    """
    return _no_index(key) if isinstance(where, (list, tuple)) else CelError(f"no such key: {shown(key)}")


def _no_index(key: Value) -> CelError:
    if isinstance(key, float):
        return CelError(f"unsupported index value {go_float(key)} in list")
    return CelError(f"unsupported index type '{type_name(key)}' in list")


def _position(key: Value) -> int:
    if isinstance(key, float) and key.is_integer():
        return int(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return key
    raise _no_index(key)


def optional_index(where: Value, key: Value) -> Optional:
    """``_[?_]``"""
    if isinstance(where, Optional):
        if not where.present:
            return where
        where = where.value
    if isinstance(where, (list, tuple)):
        position = _position(key)
        return Optional(where[position], True) if 0 <= position < len(where) else Optional()
    if isinstance(where, Mapping):
        present, value = find(where, key)
        return Optional(value, True) if present else Optional()
    return Optional()


def shown(value: Value) -> str:
    """A key as errors print it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
