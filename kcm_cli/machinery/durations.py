"""Durations in Go's format: ``1h30m``, ``300ms``.

In code, durations are seconds as floats. The smallest unit of the text is a nanosecond.
"""

import re

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote

_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, micro sign
    "μs": 10**3,  # U+03BC, Greek letter mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LIMIT = 2**63
_LONGEST = 4000
"""Characters of one number with its unit: Python converts no number of more than 4,300 digits."""
_part = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)")


def parse_duration(text: str) -> float:
    """The seconds of a duration such as ``-1.5h`` or ``2m30s``. Raises FormatError."""
    return parse_nanoseconds(text) / 1e9


def parse_nanoseconds(text: str) -> int:
    """The nanoseconds of a duration. Raises FormatError with Go's texts."""
    invalid = FormatError(f"time: invalid duration {quote(text)}")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total = position = 0
    while position < len(rest):
        match = _part.match(rest, position)
        if match is None or not (match[1] or len(match[2] or "") > 1):
            raise invalid
        if match.end() - position > _LONGEST:
            raise invalid
        total += _amount(match[1], match[2] or "", match[3], text)
        position = match.end()
    negative = text[0] == "-"
    if total > _LIMIT or (total == _LIMIT and not negative):
        raise invalid
    return -total if negative else total


def _amount(whole: str, fraction: str, unit: str, text: str) -> int:
    if not unit:
        raise FormatError(f"time: missing unit in duration {quote(text)}")
    if unit not in _NS:
        raise FormatError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
    scale = _NS[unit]
    digits = fraction[1:]
    amount = int(whole or "0") * scale
    return amount + int(digits) * scale // 10 ** len(digits) if digits else amount


def format_duration(seconds: float) -> str:
    """The duration in Go's format: ``1h0m0s``, ``1.5s``, ``300ms``, ``0s``."""
    return format_nanoseconds(round(seconds * 1e9))


def format_nanoseconds(nanoseconds: int) -> str:
    """The duration of these nanoseconds in Go's format."""
    if nanoseconds == 0:
        return "0s"
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for unit, scale, next_scale in (("ns", 1, 10**3), ("µs", 10**3, 10**6), ("ms", 10**6, 10**9)):
        if left < next_scale:
            return f"{sign}{_decimal(left, scale)}{unit}"
    minutes, left = divmod(left, 60 * 10**9)
    text = f"{_decimal(left, 10**9)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _decimal(amount: int, scale: int) -> str:
    whole, fraction = divmod(amount, scale)
    if not fraction:
        return str(whole)
    return f"{whole}.{fraction:0{len(str(scale)) - 1}d}".rstrip("0")
