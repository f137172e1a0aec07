"""An event loop in real time whose clock can be moved forward.

``advance`` lets seconds pass at once: the loop runs ready callbacks, jumps to its next timer, and repeats this until
the seconds have passed and nothing is left to do. Timers fire in order, so a program on this loop behaves as in real
time, but faster. Other processes and threads do not follow; ``patience_s`` gives them some real time for each second.
The loop does not jump while it waits for work that it gave to a thread, or for anything under ``hold``.
"""

import asyncio
import contextlib
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from kcm_cli.testing.following import REAL, FollowingLoop, Time

PATIENCE_S = 0.0
"""No part of the cluster needs real time, so that an hour takes as long as the work in it."""
STALLED_S = 30.0
"""The real time without progress after which an ``advance`` fails."""
_BUSY, _PATIENT = 0.1, 4
"""It fails if the process used a tenth of that time as CPU time. Otherwise the machine may be overloaded, and the time
is four times as long."""
REST_S = 1.0
"""The skipped time after which programs outside of the loop get real time (``patience_s``)."""


_NAMED = 20
_LOOK_S, _LONGEST_LOOK_S = 0.0005, 0.004
"""The first and the longest interval for polling followers that are not idle. What they send wakes the loop at once."""


class Stalled(Exception):
    """Time cannot pass: the cluster, or an operator in its time, is never idle. The text names what goes on."""


class GivenUp(Exception):
    """Nobody waits for this ``advance`` any more."""


def _never() -> bool:
    return False


class _Journey:
    """A running ``advance``."""

    def __init__(self, seconds: float, patience_s: float, given_up: Callable[[], bool]) -> None:
        self.left_s = seconds
        self.patience_s = patience_s
        self.given_up = given_up
        self.since_rest_s = REST_S
        self.done: Future[None] = Future()


class _WarpSelector(selectors.DefaultSelector):
    """A selector that jumps instead of waiting during an ``advance``."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = Time()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.journey: _Journey | None = None
        self.holds = 0
        self._look_s = _LOOK_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.journey is not None and self.journey.given_up():
            self.journey.done.set_exception(GivenUp())
            self.journey = None
        journey = self.journey
        if journey is None:
            return super().select(timeout)
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.holds:
            return super().select(timeout)
        if not self.shared.at_rest(self.loop):
            look_s, self._look_s = self._look_s, min(2 * self._look_s, _LONGEST_LOOK_S)
            return super().select(look_s if timeout is None else min(look_s, timeout))
        self._look_s = _LOOK_S
        ready = super().select(0)  # what a follower has sent before it became idle
        if ready:
            return ready
        if journey.left_s <= 0 or journey.since_rest_s >= REST_S:
            journey.since_rest_s = 0.0
            ready = super().select(journey.patience_s)
            if ready:
                return ready
        if journey.left_s <= 0:
            self.journey = None
            journey.done.set_result(None)
            return []
        jump_s = min(journey.left_s, self.shared.left_s(), float("inf") if timeout is None else timeout)
        journey.left_s -= jump_s
        journey.since_rest_s += jump_s
        self.shared.moved(jump_s, last=journey.left_s <= 0)
        return []


class WarpLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved forward."""

    def __init__(self) -> None:
        self._warp = _WarpSelector()
        self._turn = threading.Lock()
        super().__init__(self._warp)
        self._warp.loop = self

    def time(self) -> float:
        return REAL.monotonic() + self._warp.shared.offset_s

    def follower(self) -> FollowingLoop:
        """A new loop for another thread that shares this clock."""
        return FollowingLoop(self._warp.shared)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Within the block, time passes in real time only. Use it on the loop."""
        self._warp.holds += 1
        try:
            yield
        finally:
            self._warp.holds -= 1

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]  # typeshed's has a TypeVarTuple
        holding = contextlib.ExitStack()
        holding.enter_context(self.hold())
        try:
            future = super().run_in_executor(executor, func, *args)
        except BaseException:
            holding.close()
            raise
        future.add_done_callback(lambda _: holding.close())
        return future

    def advance(
        self,
        seconds: float,
        *,
        patience_s: float = PATIENCE_S,
        stalled_s: float = STALLED_S,
        given_up: Callable[[], bool] = _never,
    ) -> None:
        """Let seconds pass on this loop. Call it from another thread; calls are serialized. given_up: ends it, with
        GivenUp, when it is true. An error in the thread that waits, as by Ctrl-C, ends it, too.

        Raises ValueError for a negative or infinite time, RuntimeError on the loop's own thread or after its end,
        Stalled if the loop does not become idle, so that no time passes for ``stalled_s`` real seconds (four times that
        if the process got hardly any CPU).
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"time can be advanced by a number of seconds, not by {seconds}")
        if threading.get_ident() == self._thread_id:  # type: ignore[attr-defined]  # set while the loop runs
            raise RuntimeError("advance blocks: call it from another thread than the sandbox's")
        with self._turn:
            journey = _Journey(seconds, patience_s, given_up)
            self.call_soon_threadsafe(self._depart, journey)
            try:
                self._await(journey, stalled_s + patience_s)
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self.call_soon_threadsafe(self._break_off, journey)
                raise

    def _await(self, journey: _Journey, stalled_s: float) -> None:
        left_s, waits, cpu_s = journey.left_s, 0, time.process_time()
        while True:
            try:
                return journey.done.result(stalled_s)
            except TimeoutError:
                if not self.is_running():
                    raise RuntimeError("the loop has ended") from None
                if journey.left_s != left_s:
                    left_s, waits, cpu_s = journey.left_s, 0, time.process_time()
                    continue
                waits += 1
                if waits == _PATIENT or time.process_time() - cpu_s > _BUSY * stalled_s:
                    raise Stalled(self._why(left_s)) from None

    def _why(self, left_s: float) -> str:
        if restless := self._warp.shared.restless():
            never = "the operator is never idle, so that time cannot pass"
            return f"{never}: it is {' and '.join(restless)}; {left_s:g} s are left"
        pending = sorted(task.get_name() for task in asyncio.all_tasks(self))[:_NAMED] or ["no task"]
        return f"the loop always has something to do, {left_s:g} s of its time are left; pending: {', '.join(pending)}"

    def _break_off(self, journey: _Journey) -> None:
        if self._warp.journey is journey:
            self._warp.journey = None

    def close(self) -> None:
        """Abort remaining connections, and close the loop."""
        left = list(self._transports.values()) if not self.is_closed() else []  # type: ignore[attr-defined]
        for transport in left:
            transport.abort()
        if left:
            self.run_until_complete(asyncio.sleep(0))  # they close their sockets in the next iteration
        super().close()

    def _depart(self, journey: _Journey) -> None:
        self._warp.journey = journey
