"""An event loop on virtual time: when nothing is ready, time jumps to the next timer.

Guarantees: callbacks run in the order of their times; the same program with the same seed runs the same way. Functions
for another thread run on the loop and take no time. Not guaranteed: anything that waits for real I/O; use it only with
in-process transports.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")
_ROUNDING_S = 1e-9
"""asyncio runs a timer so much early: who then waits for the rest, which rounding has left, waits again and again."""


class _NoWaitSelector(selectors.SelectSelector):
    """Never blocks; reports to the loop how long it would have waited."""

    def __init__(self, skipped: Callable[[float], None]) -> None:
        super().__init__()
        self._skipped = skipped

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:  # callbacks are ready: they run first, without a system call for each round of them
            return []
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("virtual time stands still: every task waits for something that no timer will bring")
        if not ready and timeout is not None and timeout > 0:
            self._skipped(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at 0 and never sleeps."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_NoWaitSelector(self._skip))

    def time(self) -> float:
        return self._now

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        async def work() -> T:
            return func(*args)

        return self.create_task(work())

    def _skip(self, seconds: float) -> None:
        then = self._now + seconds
        timers: list[asyncio.TimerHandle] = getattr(self, "_scheduled", [])  # asyncio's heap
        first = timers[0].when() if timers else then
        self._now = first if 0 < first - then < _ROUNDING_S else then


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end on a fresh virtual loop.

    Its result is not that of a task: a runner formats its task as text (signal.getsignal does), with all of the result.
    """
    found: list[T] = []

    async def whole() -> None:
        found.append(await main)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(whole())
    return found[0]
