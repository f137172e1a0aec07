"""Numbers, times and other simple values as strings, and the maximum length of strings.

upstream: cel-go common/types (ConvertToType)
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone

from kcm_cli.machinery.cel.values import CelError, Value
from kcm_cli.machinery.go_floats import go_float
from kcm_cli.machinery.times import FIRST, LAST, parse_time

LONGEST = 1 << 22
"""Characters of a text that a function may make. Its cost follows from what it is given (as upstream), and says nothing
of what it makes, which a few calls in a row would let grow beyond any memory."""


def checked_length(length: int) -> None:
    """Raises CelError if a string of this length is too long."""
    if length > LONGEST:
        raise CelError(f"text of more than {LONGEST} characters")


def fitting(parts: Iterable[str]) -> Iterator[str]:
    """The parts of a string, as long as they are not too long together. Raises CelError."""
    length = 0
    for part in parts:
        length += len(part)
        checked_length(length)
        yield part


def simple_text(value: Value) -> str | None:
    """The string form of a value of CEL's own types; None for others. Raises CelError."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return go_float(value)
        case int():
            return str(int(value))
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case datetime():
            return _timestamp_text(value)
        case timedelta():
            return f"{_plain(value.total_seconds())}s"
    return None


def _plain(value: float) -> str:
    """A float without an exponent."""
    text = f"{value:.9f}".rstrip("0")
    return text.removesuffix(".")


def _timestamp_text(moment: datetime) -> str:
    text = moment.isoformat(timespec="seconds")
    fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
    return f"{text[:19]}{fraction}{text[19:] if moment.utcoffset() else 'Z'}"


_ZONE = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)


def zoned_time(text: str) -> datetime:
    """``parse_time``, in the zone that the text states. Raises FormatError."""
    moment = parse_time(text)
    zone = _ZONE.fullmatch(text[-6:])
    if zone is None or moment is FIRST or moment is LAST:
        return moment
    offset = timedelta(hours=int(zone[2]), minutes=int(zone[3]))
    if not timedelta(0) < offset < timedelta(days=1):
        return moment
    return moment.astimezone(timezone(-offset if zone[1] == "-" else offset))
