"""Numbers or percentages (IntOrString)."""

import re

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.quoting import quote

IntOrString = int | str

_number = re.compile(r"[+-]?[0-9]+").fullmatch


def scaled_value(value: IntOrString, total: int, *, round_up: bool) -> int:
    """The number, or the percentage of ``total``, rounded up or down.

    Raises FormatError for a string that is not a percentage, such as ``"10"``.
    """
    if isinstance(value, int):
        return value
    scaled = percent_of(value) * total
    return -(-scaled // 100) if round_up else scaled // 100


def percent_of(text: str) -> int:
    """The number in ``"25%"``. Raises FormatError."""
    if not text.endswith("%"):
        raise FormatError("invalid value for IntOrString: invalid type: string is not a percentage")
    digits = text[:-1]
    if not _number(digits):
        reason = f"strconv.Atoi: parsing {quote(digits)}: invalid syntax"
        raise FormatError(f"invalid value for IntOrString: invalid value {quote(text)}: {reason}")
    number = parse_int64(digits)
    if number is None:
        reason = f"strconv.Atoi: parsing {quote(digits)}: value out of range"
        raise FormatError(f"invalid value for IntOrString: invalid value {quote(text)}: {reason}")
    return number
