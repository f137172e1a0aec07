"""When an informer gives up a watch that the server should have ended, or that has fallen silent."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self

from kcm_cli.component.clock import Clock
from kcm_cli.rest.transport import ConnectionLost, TimedOut

LATE_S = 60.0
"""A watch that has not ended this long after its timeout is given up, although its connection is open."""
BOOKMARKS_S = 120.0
"""A watch that has had bookmarks is given up when it is silent for this time, or for twice the longest time between two
of them."""
INITIAL_S, INITIAL_OBJECTS = 10.0, 100
"""A WatchList with fewer objects in this time does not end: what comes may be changes."""


@asynccontextmanager
async def limited(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """Raises TimedOut after this time, or ConnectionLost when the limit is rescheduled for an earlier one."""
    planned = asyncio.get_running_loop().time() + seconds
    try:
        async with asyncio.timeout_at(planned) as limit:
            yield limit
    except TimeoutError as error:
        if limit.when() == planned:
            raise TimedOut("the watch was not ended in its time") from error
        raise ConnectionLost("the watch's server has fallen silent") from error


class BookmarkLimit:
    """Ends the limit of a watch whose server has sent bookmarks and has fallen silent. A context manager.

    heard_at: when it was heard last, in monotonic seconds.
    """

    def __init__(self, clock: Clock, limit: asyncio.Timeout, heard_at: Callable[[], float]) -> None:
        self._clock = clock
        self._limit = limit
        self._heard_at = heard_at
        self._marked_at = clock.monotonic()
        self._most_s = BOOKMARKS_S
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def marked(self) -> None:
        """A bookmark came."""
        before, self._marked_at = self._marked_at, self._clock.monotonic()
        self._most_s = max(self._most_s, 2 * (self._marked_at - before))
        if self._timer is None:
            self._check()

    def _check(self) -> None:
        left_s = self._heard_at() + self._most_s - self._clock.monotonic()
        if left_s > 0:
            self._timer = self._clock.call_later(left_s, self._check)
        elif not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())


class InitialLimit:
    """The limit for the initial objects of a WatchList, from its opening on."""

    def __init__(self) -> None:
        self._timeout = asyncio.timeout(None)
        self._objects = 0

    def began(self) -> None:
        """The time begins."""
        self._timeout.reschedule(asyncio.get_running_loop().time() + INITIAL_S)

    def add(self) -> None:
        """An object came. With the last one of INITIAL_OBJECTS the time begins anew."""
        self._objects += 1
        if self._objects % INITIAL_OBJECTS == 0:
            self.began()

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Ends its block when the time is over."""
        with suppress(TimeoutError):
            async with self._timeout:
                yield
