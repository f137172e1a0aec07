"""Integers with Go's limits, and their parsing as strconv.ParseInt does in base 10 (Python's int also accepts spaces,
``1_000`` and more)."""

import re

_integer = re.compile(r"[+-]?[0-9]{1,4000}").fullmatch
_LIMIT = 2**63


def parse_int64(text: str) -> int | None:
    """The number; None if the text is not a number or does not fit into 64 bits."""
    number = int(text) if _integer(text) else None
    return number if number is not None and fits_int64(number) else None


def fits_int64(number: int) -> bool:
    """Whether an integer fits into 64 bits. Go reads others in JSON as floats."""
    return -_LIMIT <= number < _LIMIT


def int32(number: int) -> int:
    """The number wrapped to 32 bits with a sign, as Go's arithmetic does."""
    return (number + 2**31) % 2**32 - 2**31
