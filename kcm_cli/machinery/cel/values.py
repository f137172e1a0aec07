"""The values of expressions: JSON values as they are, and types that JSON does not have.

int and float have 64 bits in CEL, so operations check for overflow. A bool is not a number.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from kcm_cli.machinery.durations import format_duration

Value = object
"""Any value of CEL."""

INT_MIN, INT_MAX, UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


class CelError(Exception):
    """An expression failed at run time. Clients see the text."""


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


Literal = None | bool | int | float | str | bytes | Uint
"""What can be written as a literal."""


class Duration(timedelta):
    """A length of time."""

    __slots__ = ()

    @classmethod
    def of(cls, delta: timedelta) -> "Duration":
        return cls(days=delta.days, seconds=delta.seconds, microseconds=delta.microseconds)

    def __str__(self) -> str:
        return format_duration(self.total_seconds())


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value."""

    name: str


class Optional(msgspec.Struct, frozen=True):
    """A value that may be absent (``present`` is False)."""

    value: Value = None
    present: bool = False


NONE = Optional()


class AssociativeList(list[Value]):
    """A list whose items are identified by their keys, or a set. The order does not matter for equality, and adding a
    list replaces items with the same keys.

    upstream: staging/src/k8s.io/apiserver/pkg/cel/common/values.go
    """

    __slots__ = ("keys",)

    def __init__(self, items: Iterable[Value], keys: tuple[str, ...] = ()) -> None:
        super().__init__(items)
        self.keys = keys

    def equals(self, other: Sequence[Value]) -> bool:
        mine = {self._key(item): item for item in self}
        if len(self) != len(other):
            return False
        if len(mine) != len(self):  # with repeated items, the order counts: kubernetes#140293, mended in 1.37
            return all(equal(one, another) for one, another in zip(self, other, strict=True))
        theirs = {self._key(item): item for item in other}
        return mine.keys() == theirs.keys() and all(equal(item, theirs[key]) for key, item in mine.items())

    def plus(self, other: Iterable[Value]) -> "AssociativeList":
        joined = {self._key(item): item for item in self} | {self._key(item): item for item in other}
        return AssociativeList(joined.values(), self.keys)

    def _key(self, item: Value) -> str:
        if not self.keys or not isinstance(item, Mapping):
            return repr(item)
        return repr([item.get(key) for key in self.keys])


_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (Uint, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (tuple, "list"),
    (Mapping, "map"),
    (datetime, "google.protobuf.Timestamp"),
    (timedelta, "google.protobuf.Duration"),
    (TypeValue, "type"),
    (Optional, "optional_type"),
)
TYPES = {
    name: TypeValue(name)
    for name in (
        "bool",
        "bytes",
        "double",
        "dyn",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "int",
        "list",
        "map",
        "null_type",
        "optional_type",
        "string",
        "type",
        "uint",
    )
}


def type_name(value: Value) -> str:
    """The name of a value's type."""
    if value is None:
        return "null_type"
    for python, name in _TYPE_NAMES:
        if isinstance(value, python):
            return name
    return str(getattr(value, "cel_type", type(value).__name__))


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(one: Value, other: Value) -> bool:
    """Equality across types: numbers are compared by value, and other values of different types are not equal."""
    kind, other_kind = type(one), type(other)
    if kind is other_kind and kind in (str, int, bool, float):
        return one == other
    if isinstance(one, bool) or isinstance(other, bool):
        return kind is other_kind and one == other
    if isinstance(one, (list, tuple)):
        if not isinstance(other, (list, tuple)) or len(one) != len(other):
            return False
        if isinstance(one, AssociativeList):
            return one.equals(other)
        return all(equal(first, second) for first, second in zip(one, other, strict=True))
    if isinstance(one, Mapping):
        if not isinstance(other, Mapping) or len(one) != len(other):
            return False
        return all(key in other and equal(value, other[key]) for key, value in one.items())
    if isinstance(one, Optional):
        if not isinstance(other, Optional) or one.present != other.present:
            return False
        return not one.present or equal(one.value, other.value)
    return one == other


def checked(value: int) -> int:
    """The value. Raises CelError if it does not fit into 64 bits."""
    if not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return value


def checked_uint(value: int) -> Uint:
    """The value. Raises CelError if it does not fit into 64 unsigned bits."""
    if not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(value)
