"""Tells whether an event loop still turns, and how late it is.

A task on the loop looks at the clock every PERIOD_S; how much later than asked it runs is the loop's lag. Another
thread may ask for how long the loop has not turned.
"""

from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry, exponential_buckets

PERIOD_S = 0.25


class LoopMonitor:
    """Watches the loop on which ``run`` runs."""

    def __init__(self, clock: Clock, registry: Registry) -> None:
        self._clock = clock
        self._last = clock.monotonic()
        self._lag = registry.histogram(
            "kcm_event_loop_lag_seconds",
            "How many seconds late the controllers' event loop gets to what is due.",
            exponential_buckets(0.001, 2, 14),
        ).labels()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            due = self._clock.monotonic() + PERIOD_S
            await self._clock.sleep(PERIOD_S)
            now = self._last = self._clock.monotonic()
            self._lag.observe(max(0.0, now - due))

    def stalled_s(self, now: float) -> float:
        """For how long the loop has not turned. ``now``: monotonic seconds, read on any thread."""
        return max(0.0, now - self._last - PERIOD_S)
