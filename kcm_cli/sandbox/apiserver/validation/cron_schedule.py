"""Whether a text is a cron schedule or a time zone, and what is wrong with it.

Source: pkg/apis/batch/validation/validation.go#validateScheduleFormat, validateTimeZone.
"""

import re
import zoneinfo
from functools import cache

from kcm_cli.machinery import cron
from kcm_cli.machinery.errors import FormatError

_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def schedule_problem(schedule: str) -> str:
    """What is wrong with a schedule; empty if nothing."""
    try:
        cron.parse(schedule)
    except FormatError as error:
        return str(error)
    return ""


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
