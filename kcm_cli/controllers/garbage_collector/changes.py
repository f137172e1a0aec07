"""The queue of changes of the graph, which are handled one after the other in the order in which they came.

Only the handler changes the graph, so that long work on it can yield to other tasks.

upstream: pkg/controller/garbagecollector/graph_builder.go#graphChanges
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kcm_cli.component.clock import Clock
from kcm_cli.controllers.garbage_collector.graph import Identity
from kcm_cli.machinery.meta import Object, ObjectMeta
from kcm_cli.runtime.causes import Cause, because, current
from kcm_cli.runtime.workqueue import NoMetrics, QueueMetrics

log = logging.getLogger(__name__)

NAME = "garbage_collector_graph_changes"
CHUNK = 100
"""Changes that are handled before other tasks run."""


class ObjectKind(NamedTuple):
    """The kind of a resource's objects, and its apiVersion."""

    api_version: str
    kind: str

    def identity(self, meta: ObjectMeta) -> Identity:
        return Identity(self.kind, self.api_version, meta.namespace, meta.name, meta.uid)


class Observed(NamedTuple):
    """An object was added or updated. ``old``: its metadata before, if known."""

    kind: ObjectKind
    obj: Object
    old: ObjectMeta | None


class Listed(NamedTuple):
    """The objects that a cache held when its listener was added."""

    kind: ObjectKind
    objs: list[Object]


class Deleted(NamedTuple):
    """An object was deleted."""

    kind: ObjectKind
    obj: Object


class Absent(NamedTuple):
    """The API server does not have the object. upstream: a virtual delete event."""

    identity: Identity


Change = Observed | Listed | Deleted | Absent
Unfinished = Awaitable[None] | None
"""What is left to do of a change, if it takes long; it lets others run."""


class GraphChanges:
    """The queue, which listeners and workers fill. ``run`` passes each change to ``handle``. upstream: graphChanges."""

    def __init__(self, clock: Clock, metrics: QueueMetrics | None, handle: Callable[[Change], Unfinished]) -> None:
        self._clock = clock
        self._metrics: QueueMetrics = metrics or NoMetrics()
        self._handle = handle
        self._waiting: deque[tuple[Change, Cause | None]] = deque()
        self._some = asyncio.Event()
        self._put = self._taken = 0
        self._busy = False

    @property
    def idle(self) -> bool:
        """Whether all changes have been handled."""
        return not self._waiting and not self._busy

    def put(self, change: Change) -> None:
        self._waiting.append((change, current()))
        self._put += 1
        self._metrics.added(str(self._put), len(self._waiting), self._clock.monotonic())
        self._some.set()

    async def run(self) -> None:
        """Handle changes until cancelled. A change that raises an error is logged and skipped."""
        while True:
            await self._some.wait()
            now = self._clock.monotonic()
            while self._waiting:
                change, why = self._waiting.popleft()
                self._taken += 1
                key, self._busy = str(self._taken), True
                self._metrics.taken(key, len(self._waiting), now)
                try:
                    with because(why):
                        rest = self._handle(change)
                    if rest is not None:
                        await rest
                except Exception as error:  # where the errors of one change end, as those of a sync in the worker
                    fields = {"change": type(change).__name__, "err": str(error)}
                    log.error("Change of the graph was not handled", extra={"fields": fields}, exc_info=error)
                finally:
                    self._busy, now = False, self._clock.monotonic()
                    self._metrics.finished(key, now)
                if self._taken % CHUNK == 0:
                    await asyncio.sleep(0)
                    now = self._clock.monotonic()
            self._some.clear()
