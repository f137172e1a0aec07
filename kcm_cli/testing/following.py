"""An event loop on another thread that shares the clock of a WarpLoop, so that its timers follow when time is moved.

The leading loop jumps only when all loops are idle: none has ready callbacks, no bytes are in transit between them, and
no thread works for one of them (``run_in_executor``, ``asyncio.to_thread``). It never jumps past a timer of any loop,
so that callbacks of all loops run in the order of their times.

Not covered: threads that are not awaited, other processes, and requests to other machines.
"""

import asyncio
import select
import selectors
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kcm_cli.component.clock import RealClock
from kcm_cli.testing.whereabouts import whereabouts

_UNACKNOWLEDGED, _UNSENT = 0x5411, 0x894B
"""SIOCOUTQ and SIOCOUTQNSD of Linux: how many bytes of a socket its peer has not acknowledged, and how many of them
have not been sent, for the peer's buffer is full."""
_NO_BYTES = b"\0\0\0\0"
REAL = RealClock()
_UNSENT_S, _SENT_S = 0.2, 0.003
"""The maximum real time for bytes that are not read, and for those that have been sent, which the peer's kernel has at
once, but may acknowledge 40 ms later."""
_REFUSED_S = 0.05
"""The delay before a connection of a killed program is refused."""


def under_way(loop: asyncio.AbstractEventLoop) -> list[tuple[int, bytes, bool]]:
    """A loop's sockets with bytes in transit to their reader: (descriptor, their number, whether some are not sent)."""
    if not sys.platform.startswith("linux"):
        return []
    from fcntl import ioctl  # imported here: Windows does not have it

    found = []
    by_descriptor: Any = getattr(loop, "_transports", {})
    for descriptor in list(by_descriptor):
        try:
            count = ioctl(descriptor, _UNACKNOWLEDGED, _NO_BYTES)
        except OSError:  # closed meanwhile, or no socket
            continue
        if count != _NO_BYTES:
            found.append((descriptor, count, _is_unsent(ioctl, descriptor)))
    return found


def _is_unsent(ioctl: Callable[[int, int, bytes], bytes], descriptor: int) -> bool:
    try:
        return ioctl(descriptor, _UNSENT, _NO_BYTES) != _NO_BYTES
    except OSError:  # a Unix socket, whose bytes are counted until they are read
        return True


class Time:
    """The seconds by which time was moved forward, and the loops that follow."""

    def __init__(self) -> None:
        self.offset_s = 0.0
        self._under_way: list[tuple[int, bytes, bool]] = []
        self._since = 0.0
        self._followers: list[FollowingLoop] = []

    def join(self, loop: "FollowingLoop") -> None:
        """Make time wait for this loop."""
        self._followers.append(loop)

    def leave(self, loop: "FollowingLoop") -> None:
        """Stop waiting for this loop."""
        if loop in self._followers:
            self._followers.remove(loop)

    def at_rest(self, lead: asyncio.AbstractEventLoop | None) -> bool:
        """Whether all followers are idle, and no bytes are in transit between the loops."""
        followers = list(self._followers)
        if not all(one.at_rest() for one in followers):
            self._under_way = []
            return False
        loops = (lead, *followers) if followers and lead is not None else ()
        found = [one for loop in loops for one in under_way(loop)]
        if found != self._under_way:
            self._under_way, self._since = found, REAL.monotonic()
        patience_s = max((_UNSENT_S if unsent else _SENT_S for _, _, unsent in found), default=0.0)
        return not found or REAL.monotonic() - self._since > patience_s

    def restless(self) -> list[str]:
        """Where the followers are that are not idle. For errors; called from any thread."""
        return [one.whereabouts() for one in list(self._followers) if not one.at_rest()]

    def left_s(self) -> float:
        """Seconds until the next timer of a follower."""
        return min((one.left_s() for one in list(self._followers)), default=float("inf"))

    def moved(self, seconds: float, *, last: bool) -> None:
        """Move time forward, and wake the followers whose timers are due; all of them if this is the last move."""
        self.offset_s += seconds
        for one in list(self._followers):
            if last or one.left_s() <= 0:
                one.wake()


class _Selector(selectors.DefaultSelector):
    """A selector that shows whether it waits, and until when."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.waiting = False
        self.until: float | None = None
        self.now: Callable[[], float] = lambda: 0.0
        self._own = select.poll()
        self._own.register(self.fileno(), select.POLLIN)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        with self.lock:
            self.until = None if timeout is None else self.now() + timeout
            self.waiting = True
        try:
            return super().select(timeout)
        finally:
            with self.lock:
                self.waiting = False

    def idle(self) -> bool:
        """Whether it waits and nothing would wake it. Called from another thread."""
        with self.lock:
            if not self.waiting:
                return False
        try:
            return not self._own.poll(0)
        except OSError:  # closed
            return True


class FollowingLoop(asyncio.SelectorEventLoop):
    """An event loop that shares the clock of a WarpLoop."""

    def __init__(self, time: Time) -> None:
        self._shared = time
        self._holds = 0
        self._forsaken = False
        self.wall_zero: datetime | None = None
        """What the cluster's wall clock showed when the loop's time was 0."""
        self._waiter = _Selector()
        super().__init__(self._waiter)
        self._waiter.now = self.time
        time.join(self)

    def time(self) -> float:
        return REAL.monotonic() + self._shared.offset_s

    def at_rest(self) -> bool:
        """Whether it waits for time or for other loops."""
        return not self.is_running() or (not self._holds and self._waiter.idle())

    def whereabouts(self) -> str:
        """Where its program is, in words. Called from another thread."""
        if self._holds:
            return "in a thread that it waits for"
        here = whereabouts(self._thread_id, asyncio.all_tasks(self))  # type: ignore[attr-defined]  # set while it runs
        return f"in {here}" if here else "in a library"

    def left_s(self) -> float:
        """Seconds until its next timer."""
        until = self._waiter.until
        return float("inf") if until is None or not self.is_running() else max(0.0, until - self.time())

    def wake(self) -> None:
        """Make the loop check its timers. Called from another thread."""
        with self._waiter.lock:
            self._waiter.waiting = False
        try:
            self.call_soon_threadsafe(lambda: None)
        except RuntimeError:  # closed
            self._shared.leave(self)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]  # typeshed's has a TypeVarTuple
        self._holds += 1
        try:
            future = super().run_in_executor(executor, func, *args)
        except BaseException:
            self._holds -= 1
            raise
        future.add_done_callback(self._release)
        return future

    def _release(self, _: object) -> None:
        self._holds -= 1

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        await self._check()
        return await super().create_connection(*args, **options)

    async def sock_connect(self, sock: Any, address: Any) -> None:
        await self._check()
        await super().sock_connect(sock, address)

    async def _check(self) -> None:
        if self._forsaken:
            await asyncio.sleep(_REFUSED_S)  # a program that tries again at once would never see that it is cancelled
            raise ConnectionRefusedError("this operator was killed")

    def forsake(self) -> None:
        """Stop moving time for this loop. Remaining tasks get real time, and cannot connect to anything. Called from
        another thread."""
        self._forsaken = True
        self._shared.leave(self)
        alone = Time()
        alone.offset_s = self._shared.offset_s
        self._shared = alone

    def close(self) -> None:
        self._shared.leave(self)
        super().close()
