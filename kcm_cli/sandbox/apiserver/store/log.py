"""The events of one resource in order, and the watchers that read them.

A watcher is a position in the log and not a queue: a write costs nothing per watcher until that watcher
reads, and a slow watcher holds no memory. The log is cut at its old end; who is still there then gets
``Compacted``.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from kcm_cli.sandbox.apiserver.store.errors import Compacted
from kcm_cli.sandbox.apiserver.store.stored import Event


class EventLog:
    """Kept events of one resource, oldest first. ``floor``: the last revision before what is kept."""

    def __init__(self, keep: int, floor: int) -> None:
        self._keep = keep
        self._events: list[Event] = []
        self._cut = 0  # How many events were cut off: positions count from the first event ever.
        self.floor = floor
        self._sleepers: dict[Watcher, None] = {}
        self.watchers = 0

    @property
    def end(self) -> int:
        """The position after the newest event."""
        return self._cut + len(self._events)

    def append(self, event: Event) -> None:
        """Add the newest event and wake the watchers."""
        self._events.append(event)
        if len(self._events) > self._keep + self._keep // 4:
            self._drop(len(self._events) - self._keep)
        if self._sleepers:
            sleepers, self._sleepers = self._sleepers, {}
            for watcher in sleepers:
                watcher.wake()

    def compact(self, revision: int) -> None:
        """Drop the events up to and including a revision."""
        self._drop(self._index_after(revision))
        self.floor = max(self.floor, revision)

    def since(self, revision: int) -> Sequence[Event]:
        """The events after a revision, oldest first. Raises Compacted."""
        self._check(revision)
        return self._events[self._index_after(revision) :]

    def position_after(self, revision: int) -> int:
        """Where to read on for the events after a revision. Raises Compacted."""
        self._check(revision)
        return self._cut + self._index_after(revision)

    def read(self, position: int, limit: int) -> Sequence[Event]:
        """Up to ``limit`` events from a position on. Raises Compacted."""
        start = position - self._cut
        if start < 0:
            raise Compacted(0, self.floor)
        return self._events[start : start + limit]

    def sleep(self, watcher: "Watcher") -> None:
        """Wake this watcher at the next event."""
        self._sleepers[watcher] = None

    def leave(self, watcher: "Watcher") -> None:
        """Do not wake this watcher any more."""
        self._sleepers.pop(watcher, None)

    def _check(self, revision: int) -> None:
        if revision < self.floor:
            raise Compacted(revision, self.floor)

    def _drop(self, count: int) -> None:
        if count > 0:
            self.floor = max(self.floor, self._events[count - 1].revision)
            del self._events[:count]
            self._cut += count

    def _index_after(self, revision: int) -> int:
        events = self._events
        low, high = 0, len(events)
        if not high or events[-1].revision <= revision:
            return high
        while low < high:
            middle = (low + high) // 2
            if events[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return low


class Watcher:
    """Reads the events of one resource from a revision on, in order, without loss or repeat.

    ``take`` gives what is there without waiting; ``wait`` returns when there is something, or ``close`` was
    called. ``on_wake`` may be set by a reader that has no task of its own. Belongs to one reader.
    """

    def __init__(self, log: EventLog, namespace: str, position: int) -> None:
        self._log = log
        self._namespace = namespace
        self._position = position
        self._waiting: asyncio.Future[None] | None = None
        self.on_wake: Callable[[], None] | None = None
        self.closed = False
        self._until: int | None = None
        log.watchers += 1

    def take(self, limit: int = 500) -> list[Event]:
        """The next events, at most ``limit`` of the log; empty when there are none now. Raises Compacted."""
        while True:
            events = self._log.read(self._position, limit)
            if self._until is not None:
                events = [event for event in events if event.revision <= self._until]
            self._position += len(events)
            wanted = self._namespace
            chosen = [event for event in events if event.stored.namespace == wanted] if wanted else list(events)
            if chosen or not events:
                return chosen

    @property
    def behind(self) -> bool:
        """Whether unread events are there (of any namespace)."""
        if self._position >= self._log.end or self._until is None:
            return self._position < self._log.end
        try:
            return any(event.revision <= self._until for event in self._log.read(self._position, 1))
        except Compacted:
            return True  # take says so

    @property
    def held(self) -> bool:
        """Whether it is held at a revision."""
        return self._until is not None

    def hold(self, revision: int | None) -> None:
        """Read nothing after a revision, as if it had not been written yet; None: everything."""
        self._until = revision
        self.wake()

    def arm(self) -> bool:
        """Ask for one ``on_wake`` call at the next event. False: there is something to read already."""
        if self.behind or self.closed:
            return False
        self._log.sleep(self)
        return True

    async def wait(self) -> None:
        """Return when something is to be read, or the watcher is closed."""
        if not self.arm():
            return
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None
            self._log.leave(self)

    def wake(self) -> None:
        """Called by the log, or by anyone who wants ``wait`` to return."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
        if self.on_wake is not None:
            self.on_wake()

    def close(self) -> None:
        """Read no more. May be called twice."""
        if not self.closed:
            self.closed = True
            self._log.watchers -= 1
            self._log.leave(self)
            self.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
