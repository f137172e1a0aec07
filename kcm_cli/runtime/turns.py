"""Who works on an event loop gives it back in time, so that probes, leases and other controllers never wait for one.

A worker whose syncs write nothing does not suspend by itself: without this, all keys of a restart are one turn.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from kcm_cli.component.metrics import Registry
from kcm_cli.component.virtual import VirtualLoop

log = logging.getLogger(__name__)
T = TypeVar("T")

LONG_S = 0.1
TURN_S = 0.005
"""How long the work of one turn may take before the next piece of work waits for the next turn."""
_known: "WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]" = WeakKeyDictionary()


class Turns:
    """The turns of one loop. ``virtual``: whether its time is. Then a turn takes none, and is never over: runs replay
    exactly."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use ``of_loop``."""
        self._loop = loop
        self.virtual = isinstance(loop, VirtualLoop)
        self._since: float | None = None

    @classmethod
    def of_loop(cls) -> "Turns":
        """Those of the running loop, which all workers share."""
        loop = asyncio.get_running_loop()
        found = _known.get(loop)
        if found is None:
            found = _known[loop] = cls(loop)
        return found

    def is_over(self) -> bool:
        """Whether this turn has taken TURN_S since it was first asked about."""
        if self.virtual:
            return False
        now = time.perf_counter()
        if self._since is None:
            self._since = now
            self._loop.call_soon(self._next)
        return now - self._since > TURN_S

    async def next(self) -> None:
        """Wait for the next turn, which is measured from there."""
        await asyncio.sleep(0)
        self.is_over()

    async def pause(self) -> None:
        """Return in this turn, or in the next one if this one is over. For long syncs, where they read anew."""
        if self.is_over():
            await self.next()

    def _next(self) -> None:
        self._since = None


class Longest:
    """The longest step of a controller's syncs since the start, as a metric; called with the seconds of each step.

    A step that is the longest so far and takes more than LONG_S is logged: nothing else ran meanwhile.
    """

    def __init__(self, registry: Registry, controller: str) -> None:
        family = registry.gauge(
            "kcm_controller_longest_turn_seconds",
            "Longest time for which a sync of the controller held the event loop since the start, in seconds.",
            labels=("controller",),
        )
        self._controller, self._gauge = controller, family.labels(controller)  # all queues of it share the gauge

    def __call__(self, seconds: float) -> None:
        if seconds <= self._gauge.value:
            return
        self._gauge.set(seconds)
        if seconds > LONG_S:
            fields = {"controller": self._controller, "duration_s": round(seconds, 3)}
            log.warning("A sync held the event loop", extra={"fields": fields})


class Timed(Awaitable[T]):
    """Awaits something, and reports how long each of its steps takes: the parts between which it suspends."""

    def __init__(self, work: Awaitable[T], report: Callable[[float], None]) -> None:
        """``report``: called with the seconds of each step."""
        self._work = work
        self._report = report

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._work.__await__()
        error: BaseException | None = None
        while True:
            started = time.perf_counter()
            try:  # futures are resumed without a value
                suspended = next(steps) if error is None else steps.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._report(time.perf_counter() - started)
            error = None
            try:
                yield suspended
            except BaseException as thrown:  # noqa: BLE001  # such as a cancellation: it is the work's to handle
                error = thrown
