"""Times in the API's format: RFC 3339 in UTC, with whole seconds (Time) or six decimals (MicroTime)."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_RFC3339 = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{1,2})(:\d{2}:\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII)
"""As Go reads it: an hour of one digit, a comma, and offsets of up to 24:60 are allowed."""
_ELEMENTS = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"(?:0[1-9]|1[0-2])", "01"),
    ("-", "-"),
    (r"(?:0[1-9]|[12]\d|3[01])", "02"),
    ("T", "T"),
    (r"(?:[01]\d|2[0-3]|\d(?!\d))", "15"),
    (":", ":"),
    (r"[0-5]\d", "04"),
    (":", ":"),
    (r"[0-5]\d(?:[.,]\d+)?", "05"),
    (r"(?:Z|[+-]\d{2}:\d{2})", "Z07:00"),
)
_MICRO_ELEMENTS = (*_ELEMENTS[:-2], (r"[0-5]\d", "05"), (r"[.,]\d{6}", ".000000"), _ELEMENTS[-1])
_has_micros = re.compile("[^.,]*[.,][0-9]{6}(?:Z|[+-].*)").fullmatch

_MIDNIGHT = "24"
"""An hour that newer Pythons take for the next day's 0."""
_MOST_HOURS, _MOST_MINUTES = 24, 60
_DURATION_S = 2**63 / 1e9


def span(seconds: float) -> timedelta:
    """A timedelta of these seconds, at most the 292 years of Go's Duration."""
    return timedelta(seconds=max(-_DURATION_S, min(_DURATION_S, seconds)))


def shifted(moment: datetime, seconds: float) -> datetime:
    """The time plus these seconds, limited to the range of datetime."""
    try:
        return moment + span(seconds)
    except OverflowError:
        return LAST if seconds > 0 else FIRST


def parse_time(text: str) -> datetime:
    """The aware time in UTC, truncated to microseconds. FIRST or LAST for a time outside the range of datetime (API
    servers accept the year 0). Raises FormatError with Go's text."""
    if text.startswith("0000-"):
        return _in_year_zero(text)
    if _looks_plain(text) and text[11:13] != _MIDNIGHT:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise FormatError(_why(text)) from None
    match = _RFC3339.fullmatch(text)
    if match is None or match[2] == _MIDNIGHT:
        raise FormatError(_why(text))
    day, hour, minute, fraction, sign, hours, minutes = match.groups("")
    if sign and (int(hours) > _MOST_HOURS or int(minutes) > _MOST_MINUTES):
        part = "hour" if int(hours) > _MOST_HOURS else "minute"
        raise FormatError(f"parsing time {quote(text)}: time zone offset {part} out of range")
    try:
        moment = datetime.fromisoformat(f"{day}T{hour:0>2}{minute}.{fraction[:6]:0<6}+00:00")
    except ValueError:
        raise FormatError(_why(text)) from None
    if not sign:
        return moment
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        return moment + offset if sign == "-" else moment - offset
    except OverflowError:
        return FIRST if sign == "+" else LAST


def seconds_of(text: str | None) -> float | None:
    """The time in seconds since 1970; None for an absent one, and for what is no time."""
    try:
        return parse_time(text).timestamp() if text else None
    except FormatError:
        return None


def parse_micro_time(text: str) -> datetime:
    """``parse_time`` for a text that must have six decimals."""
    if not _has_micros(text):
        raise FormatError(_why(text, _MICRO_ELEMENTS))
    try:
        return parse_time(text)
    except FormatError:
        raise FormatError(_why(text, _MICRO_ELEMENTS)) from None


def format_time(moment: datetime) -> str:
    """``2026-01-02T03:04:05Z``; fractions of a second are truncated."""
    utc = as_utc(moment)
    return _written(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second)


@lru_cache(maxsize=64)  # most times are of the current second, which each request writes several times
def _written(year: int, month: int, day: int, hour: int, minute: int, second: int) -> str:
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def format_micro_time(moment: datetime) -> str:
    """``2026-01-02T03:04:05.000006Z``."""
    return f"{as_utc(moment).isoformat(timespec='microseconds')[:26]}Z"


def _in_year_zero(text: str) -> datetime:
    """FIRST if the text is valid in another leap year. Raises FormatError."""
    try:
        parse_time(f"0004{text[4:]}")
    except FormatError:
        raise FormatError(_why(text)) from None
    return FIRST


def _looks_plain(text: str) -> bool:
    """Whether the text has the usual form ``2026-01-02T03:04:05Z``, and not another one that fromisoformat accepts."""
    return len(text) == 20 and text[7] == "-" and text[10::3] == "T::Z"


def as_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _why(text: str, elements: tuple[tuple[str, str], ...] = _ELEMENTS) -> str:
    """The error text, which names the element of the layout that does not match."""
    head = f"parsing time {quote(text)}"
    rest = text
    for pattern, element in elements:
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            if element != "2006" and (word := _out_of_range(rest, element)):
                return f"{head}: {word} out of range"
            layout = "".join(each for _, each in elements)
            return f"{head} as {quote(layout)}: cannot parse {quote(rest)} as {quote(element)}"
        rest = rest[match.end() :]
    return f"{head}: extra text: {quote(rest)}" if rest else f"{head}: day out of range"


def _out_of_range(rest: str, element: str) -> str:
    words = {"01": "month", "02": "day", "15": "hour", "04": "minute", "05": "second"}
    return words.get(element, "") if re.match("[0-9]{2}", rest) else ""
