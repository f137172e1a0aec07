"""Who works on an event loop gives it back in time, so that probes, leases and other controllers never wait for one.

A worker whose syncs write nothing does not suspend by itself: without this, all keys of a restart are one turn.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from io import BytesIO
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from kcm_cli.component.metrics import Registry
from kcm_cli.component.virtual import VirtualLoop

log = logging.getLogger(__name__)
T = TypeVar("T")
Item = TypeVar("Item")

LONG_S = 0.1
TURN_S = 0.005
"""How long the work of one turn may take before the next piece of work waits for the next turn."""
PART_S = 0.001
"""How much of each turn one long answer may take."""
_known: "WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]" = WeakKeyDictionary()


class Turns:
    """The turns of one loop, and who waits for one.

    virtual: whether the loop's time is. Then a turn takes none, and is never over: runs replay exactly.

    Who waits goes on in the order of waiting, in each turn as many as together take about TURN_S. Each has PART_S, also
    the last of a turn: with thousands who wait, a cache that handled one event and waited again never caught up.
    """

    def __init__(self, *, virtual: bool) -> None:
        """Use ``of_loop``."""
        self.virtual = virtual
        self._since: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._admitted = 1
        self._started: float | None = None
        """When those who were admitted last began to go on."""
        self._own_until = 0.0
        """Until when the one who went on last has its part."""

    @classmethod
    def of_loop(cls) -> "Turns":
        """Those of the running loop, which all workers share."""
        loop = asyncio.get_running_loop()
        found = _known.get(loop)
        if found is None:
            found = _known[loop] = cls(virtual=isinstance(loop, VirtualLoop))
        return found

    def begin(self) -> None:
        """Measure this turn from here, unless someone has begun it: call it before work for which ``is_over`` asks."""
        if not self.virtual:
            self._began()

    def is_over(self) -> bool:
        """Whether this turn has taken TURN_S since its first ``begin``, and who has waited for it PART_S."""
        if self.virtual:
            return False
        now = time.perf_counter()
        return now - self._began() > TURN_S and now > self._own_until

    async def next(self) -> None:
        """Wait for a later turn."""
        if self.virtual:
            await asyncio.sleep(0)
            return
        self._began()
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter
        self._began()
        self._own_until = time.perf_counter() + PART_S

    async def step(self) -> None:
        """Between the short steps of long work: return in this turn until it is over."""
        if self.is_over():
            await self.next()

    async def pause(self) -> None:
        """Return in this turn, or in a later one if this one is over or others wait already. Not for loops of short
        steps, which would take one step a turn while others wait: see ``step``."""
        if self._waiting or self.is_over():
            await self.next()

    def _began(self) -> float:
        """When this turn began; now, if it had not."""
        if self._since is None:
            self._since = time.perf_counter()
            asyncio.get_running_loop().call_soon(self._next)
        return self._since

    def _next(self) -> None:
        """A turn ends: let as many go on as the next one has time for, whatever else it has to do."""
        self._since = None
        if self._started is not None:  # those of the last turn have gone on
            took, self._started = time.perf_counter() - self._started, None
            if took > TURN_S:
                self._admitted = max(1, self._admitted // 2)
            elif took < TURN_S / 2:
                self._admitted = min(2 * self._admitted, len(self._waiting) + 1)
        if not self._waiting:
            return
        asyncio.get_running_loop().call_soon(self._start)  # before them
        left = self._admitted
        while self._waiting and left:
            waiter = self._waiting.popleft()
            if not waiter.done():  # it may be cancelled
                waiter.set_result(None)
                left -= 1
        self._began()  # after them

    def _start(self) -> None:
        self._started = self._since = time.perf_counter()  # others had their part of this turn


class Part:
    """The part of each turn that one long answer may take. It does not wait behind others, since a client waits for it.

    seconds: how long it is.
    """

    def __init__(self, seconds: float = PART_S) -> None:
        self._turns = Turns.of_loop()
        self._seconds = seconds
        self._began = time.perf_counter()

    def is_over(self) -> bool:
        """Whether this part has taken its time."""
        return not self._turns.virtual and time.perf_counter() - self._began > self._seconds

    async def next(self) -> None:
        """Go on in the next turn."""
        await asyncio.sleep(0)
        self._began = time.perf_counter()


async def in_turns(items: Iterable[Item], most: int) -> AsyncIterator[Item]:
    """The items one by one. Yields to the loop after each ``most`` of them, and when a turn is over."""
    turns = Turns.of_loop()
    turns.begin()
    left = drained(items)
    del items
    for number, item in enumerate(left, 1):
        yield item
        if number % most == 0 or turns.is_over():
            await turns.next()


def drained(items: Iterable[Item]) -> Iterator[Item]:
    """The items. Those of a list are not kept once they were taken: a pass over 60,000 cached pods takes many turns,
    and if it kept the versions that the cache replaced meanwhile, freeing them at its end would take 60 ms.

    Several may take from an iterator: one that leaves does not end it for the others, as ``yield from`` would.
    """
    return _popped(deque(items)) if isinstance(items, list) else iter(items)


def _popped(left: deque[Item]) -> Iterator[Item]:
    while left:
        yield left.popleft()


async def made_in_turns(make: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
    """What ``make`` returns for each of these, as many in a turn as a Part has time for."""
    part, made = Part(), list[T]()
    for item in items:
        made.append(make(item))
        if part.is_over():
            await part.next()
    return made


async def joined_in_turns(parts: Iterable[bytes]) -> bytes:
    """These one after the other. No turn has to fill all of the memory, as that of ``bytes.join`` would: 20 ms for a
    list of 5,000 nodes, most of it the pages that are used for the first time."""
    body = BytesIO()
    await made_in_turns(body.write, parts)
    return body.getvalue()


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
