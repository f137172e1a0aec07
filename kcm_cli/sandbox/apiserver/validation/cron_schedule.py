"""Whether a text is a cron schedule or a time zone, and what is wrong with it.

Source: github.com/robfig/cron/v3 parser.go; pkg/apis/batch/validation/validation.go#validateTimeZone.
"""

import re
import zoneinfo
from collections.abc import Mapping
from functools import cache

from kcm_cli.machinery.durations import parse_duration
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: n for n, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: n for n, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[int, int, Mapping[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


class _BadSchedule(Exception):
    """Says what is wrong."""


def schedule_problem(schedule: str) -> str:
    """What is wrong with a schedule; empty if nothing."""
    try:
        _parse(schedule)
    except _BadSchedule as error:
        return str(error)
    return ""


def _parse(spec: str) -> None:
    if spec.startswith(("TZ=", "CRON_TZ=")):
        space, equals = spec.find(" "), spec.find("=")
        if space < 0:
            # upstream: pkg/util/parsers#ParseCronScheduleWithPanicRecovery
            text = f"runtime error: slice bounds out of range [{equals + 1}:-1]"
            raise _BadSchedule(f"invalid schedule format: {text}")
        zone = spec[equals + 1 : space]
        if problem := _zone_problem(zone):
            raise _BadSchedule(f"provided bad location {zone}: {problem}")
        spec = spec[space:].strip()
    if spec.startswith("@"):
        return _descriptor(spec)
    fields = spec.split()
    if len(fields) != len(_FIELDS):
        raise _BadSchedule(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for text, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if part:
                _range(part, low, high, names)
    return None


def _descriptor(spec: str) -> None:
    if spec in _DESCRIPTORS:
        return
    if not spec.startswith("@every "):
        raise _BadSchedule(f"unrecognized descriptor: {spec}")
    try:
        parse_duration(spec.removeprefix("@every "))
    except FormatError as error:
        raise _BadSchedule(f"failed to parse duration {spec}: {error}") from None


def _range(expression: str, low: int, high: int, names: Mapping[str, int]) -> None:
    parts = expression.split("/")
    ends = parts[0].split("-")
    start, end = low, high
    if ends[0] not in ("*", "?"):
        start = end = _number(ends[0], names)
        if len(ends) > 2:
            raise _BadSchedule(f"too many hyphens: {expression}")
        if len(ends) == 2:
            end = _number(ends[1], names)
    step = 1
    if len(parts) > 2:
        raise _BadSchedule(f"too many slashes: {expression}")
    if len(parts) == 2:
        step = _number(parts[1], {})
        if len(ends) == 1:
            end = high
    if start < low:
        raise _BadSchedule(f"beginning of range ({start}) below minimum ({low}): {expression}")
    if end > high:
        raise _BadSchedule(f"end of range ({end}) above maximum ({high}): {expression}")
    if start > end:
        raise _BadSchedule(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise _BadSchedule(f"step of range should be a positive number: {expression}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        problem = f"strconv.Atoi: parsing {quote(text)}: invalid syntax"
        raise _BadSchedule(f"failed to parse int from {text}: {problem}")
    value = int(text)
    if not -(2**63) <= value < 2**63:
        problem = f"strconv.Atoi: parsing {quote(text)}: value out of range"
        raise _BadSchedule(f"failed to parse int from {text}: {problem}")
    if value < 0:
        raise _BadSchedule(f"negative number ({value}) not allowed: {text}")
    return value


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _zone_problem(zone: str) -> str:
    if zone in ("", "UTC", "Local") or zone in _zones():
        return ""
    return f"unknown time zone {zone}"


def zone_problems(zone: str) -> list[str]:
    """What is wrong with the name of a time zone."""
    if not zone:
        return ["timeZone must be nil or non-empty string"]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _zone_part(part):
            return [f"unknown time zone {zone}"]
    found: list[str] = []
    if zone.lower() == "local":
        found.append("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    if problem := _zone_problem(zone):
        found.append(problem)
    return found
