"""The lag of an event loop, and whether it has stalled.

A task on the loop sleeps for PERIOD_S again and again; the loop's lag is how much later it wakes up. Another thread may
read for how long the loop has been stalled.

Two loops share one interpreter lock, and CPython hands it over unfairly: a thread that gives it up for a moment at
every system call takes it again before a waiting thread has woken up, and the waiting thread's request for it starts
anew each time (measured on CPython 3.11: a thread that computes for 0.1 to 5 ms between system calls keeps the other
waiting for seconds). Hence ``SWITCH_INTERVAL_S`` and ``yields_to``: a loop that sees the other one stalled releases the
lock repeatedly, for long enough, until the other one runs again.
"""

import time

from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry, exponential_buckets

PERIOD_S = 0.25
SWITCH_INTERVAL_S = 0.0001
"""For sys.setswitchinterval: how long a thread waits for the lock before it asks for it (5 ms by default)."""

_COURTEOUS_PERIOD_S = 0.002
_PAUSE_S = 0.0003
_STANDSTILL_S = 0.1


class LoopMonitor:
    """Watches the loop on which ``run`` runs."""

    def __init__(
        self,
        clock: Clock,
        registry: Registry | None = None,
        *,
        yields_to: "LoopMonitor | None" = None,
        real_time: bool = False,
    ) -> None:
        """``registry``: where the lag is exported, if it is.

        ``real_time``: standstills are measured in real time, for a clock that is not the same on all threads.
        """
        self._clock = clock
        self._monotonic = time.monotonic if real_time else clock.monotonic
        self._last = self._monotonic()
        self._started = False
        self._yields_to = yields_to
        self._lag = None
        if registry is not None:
            self._lag = registry.histogram(
                "kcm_event_loop_lag_seconds",
                "Delay of due callbacks on the controllers' event loop, in seconds.",
                exponential_buckets(0.001, 2, 14),
            ).labels()

    async def run(self) -> None:
        """Until cancelled."""
        self._last, self._started = self._monotonic(), True
        while True:
            period_s = _COURTEOUS_PERIOD_S if self._pause() else PERIOD_S
            due = self._clock.monotonic() + period_s
            await self._clock.sleep(period_s)
            self._last = self._monotonic()
            if self._lag is not None:
                self._lag.observe(max(0.0, self._clock.monotonic() - due))

    def stalled_s(self, now: float) -> float:
        """For how long the loop has been stalled. ``now``: monotonic seconds, read on any thread."""
        return max(0.0, now - self._last - PERIOD_S) if self._started else 0.0

    def _pause(self) -> bool:
        """Release the interpreter lock if the other loop is stalled. Returns whether it is."""
        other = self._yields_to
        if other is None or other.stalled_s(self._monotonic()) < _STANDSTILL_S:
            return False
        time.sleep(_PAUSE_S)
        return True
