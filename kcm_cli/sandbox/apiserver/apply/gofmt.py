"""Values as Go prints them with ``%v``: ``map[a:1 b:[x y]]``. Some errors contain documents in this form."""

import msgspec

from kcm_cli.machinery.go_floats import go_float
from kcm_cli.machinery.integers import fits_int64

_FLOATS = 10**308


class Foreign(msgspec.Struct, frozen=True):
    """A Go value that JSON does not have: what ``%v``, ``%#v`` and ``%T`` show of it."""

    text: str
    source: str
    type: str


def go_value(value: object) -> str:
    """``%v`` of a decoded JSON value: keys sorted, strings without quotes."""
    if isinstance(value, Foreign):
        return value.text
    if value is None:
        return "<nil>"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_value(item) for item in value) + "]"
    if isinstance(value, int) and not fits_int64(value) and abs(value) < _FLOATS:
        value = float(value)  # as Go reads it
    return go_float(value) if isinstance(value, float) else str(value)


def go_type(value: object) -> str:
    """``%s`` of a decoded JSON value's type."""
    if value is None:
        return "%!s(<nil>)"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Foreign):
        return value.type
    names: dict[type, str] = {str: "string", int: "int64", float: "float64", dict: "map[string]interface {}"}
    return names.get(type(value), "[]interface {}")


def same_type(left: object, right: object) -> bool:
    """Whether two decoded JSON values have the same Go type."""
    return type(left) is type(right)


def same(left: object, right: object) -> bool:
    """Go's ``==`` on two scalars: 1 is neither 1.0 nor true."""
    return type(left) is type(right) and left == right
