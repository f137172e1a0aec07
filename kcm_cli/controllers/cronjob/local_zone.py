"""The machine's time zone, in which schedules without one are read.

Apart from the rest because it is the one thing that the machine decides: TZ, else /etc/localtime, else UTC.
"""

import os
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.zones import load_zone

_LOCALTIME = Path("/etc/localtime")


def local_zone() -> tzinfo:
    """UTC wherever the machine's zone cannot be read."""
    name = os.environ.get("TZ")
    if name is not None:
        try:
            return load_zone(name.removeprefix(":"))
        except FormatError:
            return UTC
    try:
        with _LOCALTIME.open("rb") as data:
            return ZoneInfo.from_file(data, key="Local")
    except (OSError, ValueError):
        return UTC
