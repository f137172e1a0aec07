"""The ordered events of one resource, and the watchers that read them.

A watcher is a position in the log, not a queue: a write only wakes sleeping watchers, and slow watchers take no memory.
The oldest events are dropped; a watcher that still needs them gets ``Compacted``.
"""

import asyncio
from collections.abc import Sequence

from kcm_cli.sandbox.apiserver.store.errors import Compacted
from kcm_cli.sandbox.apiserver.store.stored import Event

KEPT_BYTES = 128 << 20
"""Large objects that are written all the time would take gigabytes."""


class EventLog:
    """The latest events of one resource, oldest first. ``floor``: the last revision before these. ``keep``: their
    number, ``size``: the bytes of their objects, both at most a sixteenth more, so that few are freed at once."""

    def __init__(self, keep: int, floor: int, size: int = KEPT_BYTES) -> None:
        self._keep = keep
        self._most = size
        self._size = 0
        self._events: list[Event] = []
        self._cut = 0  # the number of dropped events: positions count from the first event of all
        self.floor = floor
        self._sleepers: dict[Watcher, None] = {}
        self.watchers = 0

    @property
    def end(self) -> int:
        """The position after the latest event."""
        return self._cut + len(self._events)

    def keeps(self, count: int) -> bool:
        """Whether so many of the latest events are far from being dropped: at most a fourth of those that fit."""
        fit = min(self._keep, self._most * len(self._events) // max(1, self._size))
        return count * 4 <= fit

    def append(self, event: Event) -> None:
        """Add an event and wake the watchers."""
        self._events.append(event)
        self._size += len(event.stored.data)
        if len(self._events) > self._keep + self._keep // 16:
            self._drop(len(self._events) - self._keep)
        if self._size > self._most + self._most // 16:
            self._drop(self._places_over())
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
        """The position of the first event after a revision. Raises Compacted."""
        self._check(revision)
        return self._cut + self._index_after(revision)

    def read(self, position: int, limit: int) -> Sequence[Event]:
        """Up to ``limit`` events, starting at a position. Raises Compacted."""
        start = position - self._cut
        if start < 0:
            raise Compacted(0, self.floor)
        return self._events[start : start + limit]

    def sleep(self, watcher: "Watcher") -> None:
        """Wake a watcher at the next event."""
        self._sleepers[watcher] = None

    def leave(self, watcher: "Watcher") -> None:
        """No longer wake a watcher."""
        self._sleepers.pop(watcher, None)

    def _check(self, revision: int) -> None:
        if revision < self.floor:
            raise Compacted(revision, self.floor)

    def _drop(self, count: int) -> None:
        if count > 0:
            self.floor = max(self.floor, self._events[count - 1].revision)
            self._size -= sum(len(event.stored.data) for event in self._events[:count])
            del self._events[:count]
            self._cut += count

    def _places_over(self) -> int:
        """The number of events to drop, so that the size of the others is at most the wanted one."""
        left = self._size
        for count, event in enumerate(self._events):
            if left <= self._most:
                return count
            left -= len(event.stored.data)
        return len(self._events)

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
    """Reads the events of one resource after a revision: in order, each once. For one reader."""

    def __init__(self, log: EventLog, namespace: str, position: int) -> None:
        self._log = log
        self._namespace = namespace
        self._position = position
        self._waiting: asyncio.Future[None] | None = None
        self.closed = False
        self._until: int | None = None
        log.watchers += 1

    def take(self, limit: int = 500) -> list[Event]:
        """The next events, up to ``limit`` of the log; empty if there are none now. Raises Compacted."""
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
        """Whether there are unread events (of any namespace)."""
        if self._position >= self._log.end or self._until is None:
            return self._position < self._log.end
        try:
            return any(event.revision <= self._until for event in self._log.read(self._position, 1))
        except Compacted:
            return True  # take raises it

    @property
    def late(self) -> bool:
        """Whether there are so many unread events (of any namespace) that some may soon be dropped."""
        return not self._log.keeps(self._log.end - self._position)

    @property
    def held(self) -> bool:
        """Whether events after a revision are held back."""
        return self._until is not None

    def hold(self, revision: int | None) -> None:
        """Hold back the events after a revision; None: none."""
        self._until = revision
        self.wake()

    async def wait(self) -> None:
        """Wait for an event, ``wake`` or ``close``."""
        if self.behind or self.closed:
            return
        self._log.sleep(self)
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None
            self._log.leave(self)

    def wake(self) -> None:
        """Make ``wait`` return."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        """Stop watching. May be called twice."""
        if not self.closed:
            self.closed = True
            self._log.watchers -= 1
            self._log.leave(self)
            self.wake()
