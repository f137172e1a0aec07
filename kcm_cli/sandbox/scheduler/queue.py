"""Pods that wait for a node: those to look at now, those that back off, and those that wait for a change.

Guarantees: of the pods to look at, the one of highest priority that has waited longest comes first; a pod that
failed waits at least its backoff (1 s doubling to 10 s with each attempt), and comes back after that as soon as
something changes that one of the plugins that refused it cares for, at the latest after five minutes.

upstream: pkg/scheduler/backend/queue/scheduling_queue.go
"""

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.scheduler.podinfo import PodInfo

BACKOFF_S, BACKOFF_MAX_S = 1.0, 10.0
LONGEST_WAIT_S = 300.0


class Place(Enum):
    """Where a pod is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


@dataclass(slots=True)
class Queued:
    """A pod in the queue. ``turn`` tells a live entry of the heap from an outdated one."""

    info: PodInfo
    since: float
    place: Place = Place.ACTIVE
    attempts: int = 0
    plugins: frozenset[str] = frozenset()
    failed_at: float = 0.0
    turn: int = 0
    timer: asyncio.TimerHandle | None = None

    def backoff_s(self) -> float:
        return min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** min(max(self.attempts - 1, 0), 10))


class SchedulingQueue:
    """See the module. Used from one loop; only ``pop`` waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, Queued] = {}
        self._heap: list[tuple[int, float, int, str]] = []
        self._turns = 0
        self._waiting: dict[str, Queued] = {}
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, key: str) -> Queued | None:
        return self._pods.get(key)

    def add(self, info: PodInfo, *, changed: bool) -> None:
        """A pod that waits for a node. ``changed``: it asks for something else than before."""
        queued = self._pods.get(info.key)
        if queued is None or queued.info.pod.uid != info.pod.uid:
            self.remove(info.key)
            queued = self._pods[info.key] = Queued(info, self._clock.monotonic())
            self._activate(queued)
            return
        queued.info = info
        if changed and queued.place is Place.UNSCHEDULABLE:
            self._move(queued)

    def remove(self, key: str) -> None:
        """The pod waits no more."""
        queued = self._pods.pop(key, None)
        self._waiting.pop(key, None)
        if queued is not None and queued.timer is not None:
            queued.timer.cancel()

    async def pop(self) -> Queued:
        """The next pod to look at; it stays in flight until it fails or is removed."""
        while True:
            while self._heap:
                _, _, turn, key = heapq.heappop(self._heap)
                queued = self._pods.get(key)
                if queued is not None and queued.turn == turn and queued.place is Place.ACTIVE:
                    queued.place = Place.IN_FLIGHT
                    queued.attempts += 1
                    return queued
            self._ready.clear()
            await self._ready.wait()

    def fail(self, key: str, plugins: frozenset[str]) -> None:
        """The pod fits nowhere; these plugins refused it. Without any it just backs off."""
        queued = self._pods.get(key)
        if queued is None:
            return
        queued.plugins, queued.failed_at = plugins, self._clock.monotonic()
        queued.place = Place.UNSCHEDULABLE
        self._waiting[key] = queued
        if not plugins:
            self._move(queued)

    def wake(self, plugins: frozenset[str] | None, helps: Callable[[PodInfo], bool] | None = None) -> None:
        """Something changed that these plugins (None: any) care for."""
        for queued in list(self._waiting.values()):
            if (plugins is None or plugins & queued.plugins) and (helps is None or helps(queued.info)):
                self._move(queued)

    def flush(self) -> None:
        """Look again at those that have waited for very long."""
        now = self._clock.monotonic()
        for queued in list(self._waiting.values()):
            if now - queued.failed_at >= LONGEST_WAIT_S:
                self._move(queued)

    def _move(self, queued: Queued) -> None:
        """From waiting to active, by way of backoff."""
        self._waiting.pop(queued.info.key, None)
        left_s = queued.failed_at + queued.backoff_s() - self._clock.monotonic()
        if left_s <= 0:
            self._activate(queued)
            return
        queued.place = Place.BACKOFF
        queued.timer = self._clock.call_later(left_s, lambda: self._activate(queued))

    def _activate(self, queued: Queued) -> None:
        queued.timer = None
        queued.place = Place.ACTIVE
        self._turns += 1
        queued.turn = self._turns
        heapq.heappush(self._heap, (-queued.info.priority, queued.since, queued.turn, queued.info.key))
        self._ready.set()
