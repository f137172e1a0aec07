"""Numbers in JSON as API servers read them: 1.0 is a float that is written as 1, and integers beyond 64 bits are
floats."""

from decimal import Decimal
from typing import cast

from kcm_cli.machinery.integers import fits_int64

_INTEGERS = 1e21
"""Floats from here on are written with an exponent."""


def widen(value: object) -> object:
    """Convert integers beyond 64 bits to floats; objects and lists in place. Raises OverflowError beyond the range of
    floats."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict | list) or _is_wide(item):
                value[key] = widen(item)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            if isinstance(item, dict | list) or _is_wide(item):
                value[index] = widen(item)
    elif _is_wide(value):
        return float(cast("int", value))
    return value


def _is_wide(value: object) -> bool:
    return isinstance(value, int) and not fits_int64(value)


def settle_numbers(value: object) -> object:
    """Convert whole floats to integers, as they are after being written; objects and lists in place."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, float | dict | list):
                value[key] = settle_numbers(item)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            if isinstance(item, float | dict | list):
                value[index] = settle_numbers(item)
    elif isinstance(value, float) and value.is_integer() and abs(value) < _INTEGERS:
        return int(Decimal(repr(value)))
    return value


def has_whole_float(value: object) -> bool:
    """Whether the value contains a float without a fraction."""
    if isinstance(value, dict):
        return any(has_whole_float(item) for item in value.values() if isinstance(item, float | dict | list))
    if isinstance(value, list):
        return any(has_whole_float(item) for item in value if isinstance(item, float | dict | list))
    return isinstance(value, float) and value.is_integer()
