"""The clock: the only source of time, so that a test or a simulation can run on virtual time.

``now`` is the wall clock (aware, UTC) for what is written to the API; ``monotonic`` (seconds) is for deadlines,
backoff and leases; ``sleep`` and ``call_later`` wait on the same time.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Protocol


def in_real_time() -> AbstractContextManager[None]:
    """Blocks jumps of virtual time while external work is awaited."""
    hold: Callable[[], AbstractContextManager[None]] | None = getattr(asyncio.get_running_loop(), "hold", None)
    return hold() if hold is not None else nullcontext()


def suspended_s() -> float:
    """Seconds for which the machine has been suspended since its start, to within 0.1 ms.

    ``monotonic`` does not count them. 0 where the system does not tell, and for a virtual machine paused by its
    host."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    except OSError:  # Python knows of such a clock, and the system does not
        return 0.0


class Clock(Protocol):
    """A clock."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""

    async def sleep(self, delay_s: float) -> None:
        """Wait; returns at once for a delay of zero or less, after letting others run."""

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """Run a callback on the running loop after a delay."""


class LoopClock:
    """The time of the running event loop; the wall clock starts at ``epoch`` where one is given.

    On an ordinary loop this is real time. On a loop whose ``time()`` is virtual (``component.virtual``) the wall
    clock moves with it.
    """

    _machine = staticmethod(time.monotonic)
    """The machine's clock. Held here, where what stops clocks in tests (freezegun) does not replace it: other threads
    of the process, such as a sandbox's, need it."""

    def __init__(self, epoch: datetime | None = None) -> None:
        self._epoch = epoch
        self._start: float | None = None

    def now(self) -> datetime:
        if self._epoch is None:
            return datetime.now(UTC)
        return self._epoch + timedelta(seconds=self._elapsed())

    def monotonic(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return self._machine()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(max(0.0, delay_s))

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(max(0.0, delay_s), callback)

    def _elapsed(self) -> float:
        current = self.monotonic()
        if self._start is None:
            self._start = current
        return current - self._start


class RealClock(LoopClock):
    """Real time, for processes (the loop's takes ten times as long to read), and for work outside of a loop whose time
    is virtual."""

    def monotonic(self) -> float:
        return self._machine()
