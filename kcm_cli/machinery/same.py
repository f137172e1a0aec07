"""Equality of JSON values. Unlike in Python, a boolean is not a number, and 1 is not 1.0.

An integer beyond 64 bits equals the float as which Go reads it.
"""

from kcm_cli.machinery.integers import fits_int64

_FLOAT_BITS = 1024


def same(left: object, right: object) -> bool:
    """Whether two values are equal."""
    if left is right:
        return True
    if type(left) is not type(right):
        return _are_same_float(left, right) or _are_same_float(right, left)
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and same(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return left == right


def _are_same_float(number: object, wide: object) -> bool:
    if type(number) is not float or type(wide) is not int:
        return False
    return not fits_int64(wide) and wide.bit_length() < _FLOAT_BITS and number == float(wide)
