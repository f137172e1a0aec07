"""Equality of JSON values. Unlike in Python, a boolean is not a number, and 1 is not 1.0.

An integer beyond 64 bits equals the float as which Go reads it.
"""

from kcm_cli.machinery.integers import fits_int64

_FLOAT_BITS = 1024


def same(left: object, right: object) -> bool:
    """Whether two values are equal, however deep they are."""
    left_of, right_of = [left], [right]
    while left_of:
        one, other = left_of.pop(), right_of.pop()
        if one is other:
            continue
        if type(one) is not type(other):
            if not (_are_same_float(one, other) or _are_same_float(other, one)):
                return False
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            left_of += one.values()
            right_of += [other[key] for key in one]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            left_of += one
            right_of += other
        elif one != other:
            return False
    return True


def _are_same_float(number: object, wide: object) -> bool:
    if type(number) is not float or type(wide) is not int:
        return False
    return not fits_int64(wide) and wide.bit_length() < _FLOAT_BITS and number == float(wide)
