"""Time zones by their IANA names, and conversion of local times."""

from datetime import UTC, datetime, timedelta, tzinfo

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.remembered import remembered

_MOST_PARTS = 4
"""America/Argentina/Ushuaia has three. Each part is looked for as a package."""


@remembered(1024)
def load_zone(name: str) -> tzinfo:
    """The zone with this name; "" and "UTC" are UTC. Raises FormatError."""
    if name in ("", "UTC"):
        return UTC
    if ".." in name.split("/") or name[0] in "/\\" or "\\" in name:
        raise FormatError("time: invalid location name")
    if name.count("/") >= _MOST_PARTS:
        raise FormatError(f"unknown time zone {name}")
    # imported here: most clusters name no zone, and it takes 0.4 MiB
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise FormatError(f"unknown time zone {name}") from None


def instant(wall: datetime, zone: tzinfo) -> datetime:
    """The time in UTC of this naive local time.

    A skipped local time is off by an hour, as in Go. For a repeated one, the choice is Go's, too.
    """
    if zone is UTC:
        return wall.replace(tzinfo=UTC)
    as_utc = wall.replace(tzinfo=UTC)
    guess = _offset(as_utc, zone)
    return as_utc - _offset(as_utc - guess, zone) if guess else as_utc


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)
