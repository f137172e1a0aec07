"""Integers as Go has them: of limited size; in texts, as strconv.ParseInt reads them in base 10 (Python's int takes
blanks, ``1_000`` and more)."""

import re

_integer = re.compile(r"[+-]?[0-9]{1,4000}").fullmatch
_LIMIT = 2**63


def parse_int64(text: str) -> int | None:
    """The number; None for what is none, or does not fit into 64 bits."""
    number = int(text) if _integer(text) else None
    return number if number is not None and fits_int64(number) else None


def fits_int64(number: int) -> bool:
    """Whether an integer fits into 64 bits. Go reads others from JSON as floats."""
    return -_LIMIT <= number < _LIMIT


def int32(number: int) -> int:
    """What is left of a sum or a product in 32 bits, with its sign there: Go's wrap around."""
    return (number + 2**31) % 2**32 - 2**31
