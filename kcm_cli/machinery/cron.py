"""Schedules of CronJobs: five fields, ``@daily`` and its like, ``@every 1h30m``, an optional ``TZ=`` in front.

Guarantees: the same schedules are valid, with the same error texts, and have the same times as with the library that
Kubernetes uses. This includes daylight saving changes: skipped hours start nothing, repeated hours start twice, and if
midnight is skipped its day may be confused with an adjacent one.

Source: github.com/robfig/cron/v3 (ParseStandard). Python's libraries differ in the rules for days, in names and steps,
and at daylight saving changes.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from kcm_cli.machinery.durations import parse_nanoseconds
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import SPACES
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.remembered import remembered
from kcm_cli.machinery.times import shifted
from kcm_cli.machinery.zones import instant, load_zone

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_SEARCHED_YEARS = 5
_FIRST_YEAR, _LAST_YEAR = 2, 9990
_FIRST = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC)
_NS = 10**9
_integer = re.compile(r"[+-]?[0-9]+").fullmatch
_spaces = re.compile(f"[{SPACES}]+")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class _Bounds(msgspec.Struct, frozen=True):
    """The range of a field, and its names."""

    low: int
    high: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        if text.lower() in self.names:
            return self.names.index(text.lower()) + self.low
        return _number(text)


_BOUNDS = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Field(msgspec.Struct, frozen=True):
    """The matching values. ``any``: the field is a star without a step."""

    values: frozenset[int]
    any: bool = False

    def __contains__(self, value: int) -> bool:
        return value in self.values


class Calendar(msgspec.Struct, frozen=True):
    """The times at which all fields match in a zone. A zone of None is the machine's."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    zone: tzinfo | None = None

    def next(self, after: datetime, local: tzinfo = UTC) -> datetime | None:
        """The first time after ``after`` (aware), in UTC; None if there is none within five years."""
        if not (self.minute.values and self.hour.values and self.month.values) or after.year > _LAST_YEAR:
            return None  # a field of nothing but commas, or no time left
        return _Search(self, max(after, _FIRST), self.zone or local).run()

    def matches_day(self, moment: datetime) -> bool:
        """Whether the day matches: both fields have to if either is a star, else one of them."""
        by_date, by_weekday = moment.day in self.day, moment.isoweekday() % 7 in self.weekday
        if self.day.any or self.weekday.any:
            return by_date and by_weekday
        return by_date or by_weekday


class Every(msgspec.Struct, frozen=True):
    """A constant interval in whole seconds, at least one."""

    delay: timedelta

    def next(self, after: datetime, local: tzinfo = UTC) -> datetime | None:
        """``after`` plus the interval, truncated to a second."""
        if after.year > _LAST_YEAR:
            return None
        start = max(after, _FIRST).astimezone(UTC).replace(microsecond=0)
        return shifted(start, self.delay.total_seconds())


Schedule = Calendar | Every


class _Search:
    """Advances by months, then days, hours and minutes, until all fields match.

    When a smaller unit carries over into a larger one, the larger units are checked again. The units below the first
    one that was advanced start at their minimum.
    """

    def __init__(self, calendar: Calendar, after: datetime, zone: tzinfo) -> None:
        self._calendar = calendar
        self._zone = zone
        start = after.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        self._local = start.astimezone(zone)
        self._stepped = False

    def run(self) -> datetime | None:
        last_year = min(self._local.year + _SEARCHED_YEARS, _LAST_YEAR)
        while self._local.year <= last_year:
            if self._months() and self._days() and self._hours() and self._minutes():
                return self._local.astimezone(UTC)
        return None

    def _months(self) -> bool:
        """Advance to a matching month. False if the year ends."""
        while self._local.month not in self._calendar.month:
            self._begin(day=1, hour=0, minute=0)
            year, month = divmod(self._local.year * 12 + self._local.month, 12)
            # Where the first midnight of a month is skipped this is its predecessor's last day: as Go does, a day
            # that the next month has not is one of the month behind it.
            first = self._local.replace(year=year, month=month + 1, day=1, tzinfo=None)
            self._show(first + _DAY * (self._local.day - 1))
            if self._local.month == 1:
                return False
        return True

    def _days(self) -> bool:
        """Advance to a matching day. False if the month ends."""
        while not self._calendar.matches_day(self._local):
            self._begin(hour=0, minute=0)
            self._show(self._local.replace(tzinfo=None) + _DAY)
            hour = self._local.hour
            if hour:  # midnight was skipped: to the next one, or back to the hour before the day
                self._move(_HOUR * (24 - hour if hour > 12 else -hour))
            if self._local.day == 1:
                return False
        return True

    def _hours(self) -> bool:
        while self._local.hour not in self._calendar.hour:
            self._begin(minute=0)
            self._move(_HOUR)
            if self._local.hour == 0:
                return False
        return True

    def _minutes(self) -> bool:
        while self._local.minute not in self._calendar.minute:
            self._stepped = True
            self._move(_MINUTE)
            if self._local.minute == 0:
                return False
        return True

    def _begin(self, **parts: int) -> None:
        """Before the first step, reset the smaller units."""
        if not self._stepped:
            self._stepped = True
            self._show(self._local.replace(tzinfo=None, **parts))

    def _show(self, wall: datetime) -> None:
        self._local = instant(wall.replace(fold=0), self._zone).astimezone(self._zone)

    def _move(self, step: timedelta) -> None:
        self._local = (self._local.astimezone(UTC) + step).astimezone(self._zone)


@remembered(4096)
def parse(text: str) -> Schedule:
    """Parse a schedule. Raises FormatError with Kubernetes' texts."""
    if not text:
        raise FormatError("empty spec string")
    zone: tzinfo | None = None
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, text = _zone(text)
    if text.startswith("@"):
        return _descriptor(text, zone)
    return _calendar(text, zone)


def _zone(text: str) -> tuple[tzinfo | None, str]:
    head, space, rest = text.partition(" ")
    if not space:
        raise FormatError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    name = head.partition("=")[2]
    try:
        return None if name == "Local" else load_zone(name), rest.strip(SPACES)
    except FormatError as error:
        raise FormatError(f"provided bad location {name}: {error}") from None


def _descriptor(text: str, zone: tzinfo | None) -> Schedule:
    fields = _DESCRIPTORS.get(text)
    if fields is not None:
        return _calendar(fields, zone)
    if not text.startswith("@every "):
        raise FormatError(f"unrecognized descriptor: {text}")
    try:
        nanoseconds = parse_nanoseconds(text.removeprefix("@every "))
    except FormatError as error:
        raise FormatError(f"failed to parse duration {text}: {error}") from None
    return Every(timedelta(seconds=max(1, nanoseconds // _NS)))


def _calendar(text: str, zone: tzinfo | None) -> Calendar:
    parts = [part for part in _spaces.split(text) if part]
    if len(parts) != len(_BOUNDS):
        found = " ".join(parts)
        raise FormatError(f"expected exactly {len(_BOUNDS)} fields, found {len(parts)}: [{found}]")
    minute, hour, day, month, weekday = (_field(part, bounds) for part, bounds in zip(parts, _BOUNDS, strict=True))
    return Calendar(minute, hour, day, month, weekday, zone)


def _field(text: str, bounds: _Bounds) -> Field:
    values: set[int] = set()
    star = False
    for expression in text.split(","):
        if expression:
            found, is_star = _range(expression, bounds)
            values.update(found)
            star = star or is_star
    return Field(frozenset(values), star)


def _range(expression: str, bounds: _Bounds) -> tuple[range, bool]:
    """The values of ``*``, ``3``, ``1-5`` or a name, optionally with ``/2``, and whether it is a plain star. ``3/2``
    extends to the maximum."""
    limits, *steps = expression.split("/")
    low, *high = limits.split("-")
    star = low in ("*", "?")
    if star:
        start, end = bounds.low, bounds.high
    else:
        start = end = bounds.number(low)
        if len(high) == 1:
            end = bounds.number(high[0])
        elif high:
            raise FormatError(f"too many hyphens: {expression}")
    if len(steps) > 1:
        raise FormatError(f"too many slashes: {expression}")
    step = _number(steps[0]) if steps else 1
    if steps and not high:
        end = bounds.high
    _check(start, end, step, expression, bounds)
    return range(start, end + 1, step), star and step == 1


def _check(start: int, end: int, step: int, expression: str, bounds: _Bounds) -> None:
    if start < bounds.low:
        raise FormatError(f"beginning of range ({start}) below minimum ({bounds.low}): {expression}")
    if end > bounds.high:
        raise FormatError(f"end of range ({end}) above maximum ({bounds.high}): {expression}")
    if start > end:
        raise FormatError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise FormatError(f"step of range should be a positive number: {expression}")


def _number(text: str) -> int:
    if not _integer(text):
        raise FormatError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    value = parse_int64(text)
    if value is None:
        problem = "value out of range"
        raise FormatError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: {problem}")
    if value < 0:
        raise FormatError(f"negative number ({value}) not allowed: {text}")
    return value
