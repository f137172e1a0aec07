"""Adapts the wall clock of operator frameworks to the cluster's time.

kopf stores the time of a handler's next attempt as wall clock time, and computes the present time from a base and the
loop's time. The base is ``progression._get_basetime`` (which exists for tests). On a loop that follows a sandbox, the
base is the cluster's.
"""

import asyncio
import sys
from datetime import datetime, timedelta
from typing import Any

from kcm_cli.testing.following import FollowingLoop

_KOPF = "kopf._core.actions.progression"


def adapt() -> None:
    """Adapt the frameworks that have been imported so far. May be called repeatedly."""
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
    """The wall clock time at which a loop's time was 0."""
    return now - timedelta(seconds=loop_time)
