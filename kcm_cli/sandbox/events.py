"""Events of simulated components, written in the background in core/v1 form, with counts.

Guarantees: emitting never waits. Events that cannot be written fast enough are dropped, so that they cost less than the
pods that they are about.

upstream: staging/src/k8s.io/client-go/tools/record
"""

import asyncio
import logging
from collections import deque

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import TokenBucket
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.events.correlate import Correlator, Emitted, Source
from kcm_cli.runtime.events.counted import CountedEvents, EventNames

log = logging.getLogger(__name__)

WAITING = 1000
ROUTINE_PER_S, ROUTINE_BURST = 20.0, 200
"""Limits of Normal Events of kubelets, all nodes together."""


def ref_of(kind: str, obj: Object, field_path: str = "") -> EventRef:
    """A reference to the object of the core group that an Event is about."""
    meta = obj.metadata
    return EventRef("v1", kind, meta.namespace, meta.name, meta.uid, meta.resource_version, field_path)


class Events:
    """The Events of all simulated components."""

    def __init__(self, client: Client, names: EventNames, clock: Clock) -> None:
        self._counted = CountedEvents(client)
        self._names = names
        self._clock = clock
        self._queue: deque[Emitted] = deque()
        self._there = asyncio.Event()
        self._correlator = Correlator()
        self._routine = TokenBucket(ROUTINE_PER_S, ROUTINE_BURST)

    def kubelet(self, host: str, notice: Notice) -> None:
        """Emit an Event as a node's kubelet."""
        if notice.type == "Normal" and not self._routine.try_take(self._clock.monotonic()):
            return
        self._put(Source("kubelet", host), notice)

    def component(self, component: str, notice: Notice) -> None:
        """Emit an Event as another component."""
        self._put(Source(component), notice)

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            while self._queue:
                event = self._queue.popleft()
                fields = {"reason": event.notice.reason, "object": event.notice.ref.name}
                try:
                    await self._write(event)
                except RequestError as error:
                    log.debug("Event not written", extra={"fields": {**fields, "err": str(error)}})
                except Exception as error:  # it costs the other Events nothing
                    log.error("Unable to write event", extra={"fields": fields}, exc_info=error)
            self._there.clear()
            await self._there.wait()

    def _put(self, source: Source, notice: Notice) -> None:
        if len(self._queue) >= WAITING:
            return
        self._queue.append(Emitted(source, notice, self._names.of(notice.ref), format_time(self._clock.now())))
        self._there.set()

    async def _write(self, event: Emitted) -> None:
        decision = self._correlator.decide(event, self._clock.monotonic())
        if decision is not None:
            await self._counted.write(event, decision)
