"""The wall clock of operators that live in the cluster's time, where a framework has a place for it.

kopf writes down when a handler is to be tried again, as a time of the wall clock, and computes "now" of a base and the
loop's time; the base is had from ``progression._get_basetime`` ("for testability", as it says there). On a loop that
follows a sandbox it is the cluster's.
"""

import asyncio
import sys
from datetime import datetime, timedelta
from typing import Any

from kcm_cli.sandbox.following import FollowingLoop

_KOPF = "kopf._core.actions.progression"


def adapt() -> None:
    """Adapt what has been imported so far. May be called again and again."""
    module: Any = sys.modules.get(_KOPF)
    base = getattr(module, "_get_basetime", None)
    if base is None or getattr(base, "of_clusters", False):
        return

    def basetime() -> datetime:
        loop = asyncio.get_running_loop()
        zero = loop.wall_zero if isinstance(loop, FollowingLoop) else None
        found: datetime = base() if zero is None else zero
        return found

    basetime.of_clusters = True  # type: ignore[attr-defined]  # a mark
    module._get_basetime = basetime


def zero_of(now: datetime, loop_time: float) -> datetime:
    """The time of the wall clock at which a loop's time was 0."""
    return now - timedelta(seconds=loop_time)
