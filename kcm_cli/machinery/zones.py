"""Time zones by their IANA names, and the clock on the wall in them.

Source: Go's time.LoadLocation and time.Date, whose texts of errors and choices at changes of the clock these are.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.remembered import remembered


@remembered(1024)
def load_zone(name: str) -> tzinfo:
    """The zone of this name; "" and "UTC" are UTC. Raises FormatError."""
    if name in ("", "UTC"):
        return UTC
    if ".." in name.split("/") or name[0] in "/\\" or "\\" in name:
        raise FormatError("time: invalid location name")
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise FormatError(f"unknown time zone {name}") from None


def instant(wall: datetime, zone: tzinfo) -> datetime:
    """When the clocks of a zone show this (naive) time, in UTC.

    A time that the clocks skip gives the one an hour off that Go gives, by the offset that holds at either side; of
    a time that they show twice the choice is Go's as well.
    """
    if zone is UTC:
        return wall.replace(tzinfo=UTC)
    as_utc = wall.replace(tzinfo=UTC)
    guess = _offset(as_utc, zone)
    return as_utc - _offset(as_utc - guess, zone) if guess else as_utc


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)
