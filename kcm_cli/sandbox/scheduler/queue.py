"""The scheduling queue: active pods, pods in backoff, and unschedulable pods that wait for a change.

Guarantees: active pods are taken by priority, then in the order in which they were added. An unschedulable pod is
queued again when a change concerns one of the plugins that rejected it, at the latest after five minutes. It first
waits for its backoff (1 s, doubled up to 10 s with each attempt) unless the scheduler is idle. A pod that failed
because of a request always waits for its backoff. Where many wait, what a change means for them is found in turns of
the loop, one change after the other; a pod that has failed since may be queued once more than it had to be.

upstream: pkg/scheduler/backend/queue/scheduling_queue.go
"""

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.rest.ratelimit import TokenBucket
from kcm_cli.runtime.causes import RETRY, Cause, Causes, Tick, current
from kcm_cli.runtime.turns import Turns
from kcm_cli.sandbox.scheduler.hints import Hint
from kcm_cli.sandbox.scheduler.podinfo import PodInfo

log = logging.getLogger(__name__)
BACKOFF_S, BACKOFF_MAX_S = 1.0, 10.0
LONGEST_WAIT_S = 300.0
AT_ONCE = 500
"""With more waiting pods than this, a change is looked at in turns: to queue 10,000 takes 80 ms."""
MOST_CHANGES = 1000
"""If more are still to be looked at, all waiting pods are queued instead."""
EARLY_PER_S, EARLY_BURST = 50.0, 100
"""How many pods are looked at before their backoff is over: where many wait, each change must not cost all of them."""


class QueuePart(Enum):
    """The part of the queue."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


class Queued(msgspec.Struct):
    """A pod in the queue, at its place since ``since``. ``turn``: that of its current entry in a heap; others are old.

    refusals: the number of attempts without a feasible node. errors: the number of other failures since the last of
    these. why: what it was queued for since it was last taken.
    """

    info: PodInfo
    since: float
    place: QueuePart = QueuePart.ACTIVE
    refusals: int = 0
    errors: int = 0
    plugins: frozenset[str] = frozenset()
    turn: int = 0
    timer: asyncio.TimerHandle | None = None
    why: Causes = msgspec.field(default_factory=Causes)

    def queued(self, cause: Cause | None) -> None:
        """Remember what it is queued for."""
        self.why.add(cause or Tick(RETRY))

    def taken(self) -> Causes:
        """What it was queued for, which is forgotten."""
        why, self.why = self.why, Causes()
        return why

    def backoff_s(self) -> float:
        count = self.errors or self.refusals
        return min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** min(max(count - 1, 0), 10))


def _may_help(helps: Hint, queued: Queued) -> bool:
    """Whether a change may help a pod, also where that cannot be told: one pod costs the others nothing."""
    try:
        return helps(queued.info, queued.plugins)
    except Exception as error:
        log.error("Cannot tell whether a change helps", extra={"fields": {"pod": queued.info.key}}, exc_info=error)
        return True


def _always(_: Queued) -> bool:
    return True


class SchedulingQueue:
    """The queue. Use it on one loop, on which ``run`` runs; of the other methods only ``pop`` waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, Queued] = {}
        self._heap: list[tuple[int, float, int, str]] = []
        self._backing_off: list[tuple[float, int, float, int, str]] = []
        self._early = TokenBucket(EARLY_PER_S, EARLY_BURST)
        self._turns = 0
        self._waiting: dict[str, Queued] = {}
        self._ready = asyncio.Event()
        self._changes: deque[tuple[Callable[[Queued], bool], Cause | None]] = deque()
        """Whom each change helps that is still to be looked at, and its cause."""
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Queue the pods that changes help, where many wait, until cancelled."""
        turns = Turns.of_loop()
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._changes:
                helps, cause = self._changes.popleft()
                for queued in list(self._waiting.values()):
                    if self._waiting.get(queued.info.key) is queued and helps(queued):
                        self._move(queued, cause)
                    await turns.step()

    def get(self, key: str) -> Queued | None:
        return self._pods.get(key)

    def add(self, info: PodInfo, helps: Hint | None = None) -> None:
        """Add or update a waiting pod. ``helps``: whether the update may make it schedulable."""
        queued = self._pods.get(info.key)
        if queued is None or queued.info.pod.uid != info.pod.uid:
            self.remove(info.key)
            queued = self._pods[info.key] = Queued(info, self._clock.monotonic())
            queued.queued(current())
            self._activate(queued)
            return
        queued.info = info
        if helps is not None and queued.place is QueuePart.UNSCHEDULABLE and _may_help(helps, queued):
            self._move(queued, current())

    def remove(self, key: str) -> None:
        """Remove a pod."""
        queued = self._pods.pop(key, None)
        self._waiting.pop(key, None)
        if queued is not None and queued.timer is not None:
            queued.timer.cancel()

    async def pop(self) -> Queued:
        """The next pod to schedule. It is in flight until it fails or is removed."""
        while True:
            while self._heap:
                _, _, turn, key = heapq.heappop(self._heap)
                queued = self._pods.get(key)
                if queued is not None and queued.turn == turn and queued.place is QueuePart.ACTIVE:
                    queued.place = QueuePart.IN_FLIGHT
                    return queued
            early = self._pop_early()
            if early is not None:
                return early
            self._ready.clear()
            await self._ready.wait()

    def _pop_early(self) -> Queued | None:
        """The pod whose backoff ends first, of those that a change has queued."""
        heap = self._backing_off
        while heap:
            _, _, _, turn, key = heap[0]
            queued = self._pods.get(key)
            if queued is None or queued.turn != turn or queued.place is not QueuePart.BACKOFF:
                heapq.heappop(heap)
                continue
            if not self._early.try_take(self._clock.monotonic()):
                return None
            heapq.heappop(heap)
            if queued.timer is not None:
                queued.timer.cancel()
                queued.timer = None
            queued.place = QueuePart.IN_FLIGHT
            return queued
        return None

    def fail(self, key: str, plugins: frozenset[str]) -> None:
        """The pod is unschedulable, rejected by these plugins. Without plugins it only waits for its backoff."""
        queued = self._pods.get(key)
        if queued is None:
            return
        queued.plugins, queued.since = plugins, self._clock.monotonic()
        queued.refusals += bool(plugins)
        queued.errors = 0 if plugins else queued.errors + 1
        queued.place = QueuePart.UNSCHEDULABLE
        self._waiting[key] = queued
        if not plugins:
            self._move(queued, current())

    def wake(self, plugins: frozenset[str]) -> None:
        """Queue the pods that one of these plugins rejected."""
        self.wake_where(lambda _, refused_by: not plugins.isdisjoint(refused_by))

    def wake_where(self, helps: Hint) -> None:
        """Queue the pods that a change may help."""
        self._wake(lambda queued: _may_help(helps, queued))

    def flush(self) -> None:
        """Queue pods that have waited for the maximum time."""
        now = self._clock.monotonic()
        self._wake(lambda queued: now - queued.since >= LONGEST_WAIT_S)

    def _wake(self, helps: Callable[[Queued], bool]) -> None:
        if self._changes or len(self._waiting) > AT_ONCE:
            if len(self._changes) >= MOST_CHANGES:
                self._changes.clear()
                helps = _always
            self._changes.append((helps, current()))
            self._changed.set()
            return
        for queued in list(self._waiting.values()):
            if helps(queued):
                self._move(queued, current())

    def _move(self, queued: Queued, cause: Cause | None) -> None:
        """Make a waiting pod active, after its backoff."""
        queued.queued(cause)
        self._waiting.pop(queued.info.key, None)
        until = queued.since + queued.backoff_s()
        left_s = until - self._clock.monotonic()
        if left_s <= 0:
            self._activate(queued)
            return
        queued.place = QueuePart.BACKOFF
        queued.timer = self._clock.call_later(left_s, lambda: self._activate(queued))
        if queued.plugins:
            self._turns += 1
            queued.turn = self._turns
            entry = (until // 1.0, -queued.info.priority, queued.since, queued.turn, queued.info.key)
            heapq.heappush(self._backing_off, entry)
            self._ready.set()

    def _activate(self, queued: Queued) -> None:
        queued.timer = None
        queued.place = QueuePart.ACTIVE
        self._turns += 1
        queued.turn = self._turns
        heapq.heappush(self._heap, (-queued.info.priority, queued.since, queued.turn, queued.info.key))
        self._ready.set()
