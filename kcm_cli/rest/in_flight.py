"""Limits the requests in flight, and so the number of connections.

Each connection costs a TLS handshake on both sides. A few dozen connections carry thousands of requests a second to a
server that answers in milliseconds; a slow one (webhooks, an overloaded etcd) needs more. So the limit starts low and
doubles whenever a request has waited for PATIENCE_S (or up to twice that), and halves, down to where it started, after
each CALM_S in which half of it would have done.

Guarantees: first come, first served; never more than ``most``; a cancelled waiter loses no slot.
"""

import asyncio
from collections import deque

from kcm_cli.component.clock import Clock

PATIENCE_S = 0.1
CALM_S = 60.0


class Slots:
    """``take`` or else ``wait`` for a slot, then ``give_back`` it."""

    def __init__(self, first: int, most: int, clock: Clock) -> None:
        self.total = first
        self._first, self._most = first, most
        self._free = first
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._calm_at = clock.monotonic() + CALM_S
        self._peak = 0
        """The most slots in use since CALM_S before ``_calm_at``."""

    def take(self) -> bool:
        """A slot, if one is free and there are no waiters."""
        if self._free == 0 or self._waiting:
            self._peak = self.total
            return False
        self._free -= 1
        self._peak = max(self._peak, self.total - self._free)
        if self.total > self._first and self._clock.monotonic() >= self._calm_at:
            self._calm_down()
        return True

    async def wait(self) -> None:
        """A slot, when it is this one's turn."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._be_patient()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give_back()  # it was given a slot at the moment of its cancellation
            raise

    def give_back(self) -> None:
        """Free the slot for the next waiter."""
        self._free += 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._free -= 1
                waiter.set_result(None)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _be_patient(self) -> None:
        if self._timer is None and self.total < self._most:
            head = self._waiting[0]
            self._timer = self._clock.call_later(PATIENCE_S, lambda: self._look(head))

    def _calm_down(self) -> None:
        if self._peak <= self.total // 2:
            less = min(self.total // 2, self.total - self._first)
            self.total -= less
            self._free -= less
        self._peak, self._calm_at = self.total - self._free, self._clock.monotonic() + CALM_S

    def _look(self, head: asyncio.Future[None]) -> None:
        """Double the limit if the waiter that was first PATIENCE_S ago still waits."""
        self._timer = None
        if not head.done():
            more = min(self.total, self._most - self.total)
            self.total += more
            self._free += more
            self._peak, self._calm_at = self.total, self._clock.monotonic() + CALM_S
            self._hand_out()
        if self._waiting:
            self._be_patient()
