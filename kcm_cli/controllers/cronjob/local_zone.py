"""The machine's time zone, for schedules without one: TZ, else /etc/localtime, else UTC.

A module of its own, since nothing else in the controllers depends on the machine.
"""

import os
from datetime import UTC, tzinfo
from pathlib import Path

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.zones import load_zone

_LOCALTIME = Path("/etc/localtime")


def local_zone() -> tzinfo:
    """The time zone; UTC if it cannot be read."""
    name = os.environ.get("TZ")
    if name is not None:
        try:
            return load_zone(name.removeprefix(":"))
        except FormatError:
            return UTC
    # imported here: see zones.load_zone
    from zoneinfo import ZoneInfo

    try:
        with _LOCALTIME.open("rb") as data:
            return ZoneInfo.from_file(data, key="Local")
    except (OSError, ValueError):
        return UTC
