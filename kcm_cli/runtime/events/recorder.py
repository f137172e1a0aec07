"""Writes Events in the background, a few at a time, without ever holding a controller up.

Guarantees: ``emit`` returns at once; Events of one object go out in order. Not guaranteed: that an Event arrives.
A full queue drops new ones, and a server that cannot be reached is tried a dozen times and then given up on.

upstream: staging/src/k8s.io/client-go/tools/record/event.go
"""

import asyncio
import logging
import random
from dataclasses import replace
from zlib import crc32

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Notice
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.events.correlate import Correlator, Decision
from kcm_cli.runtime.events.counted import CountedEvents, EventNames, Source

log = logging.getLogger(__name__)

QUEUE = 1000
LANES = 4
"""Events of one object stay in order; those of different objects may overtake each other."""
ATTEMPTS = 12
PAUSE_S = 10.0


class EventWriter:
    """One client's Events on their way out. Recorders of several sources may share it."""

    def __init__(self, client: Client, names: EventNames, clock: Clock, rng: random.Random) -> None:
        self._events = CountedEvents(client, names)
        self._clock = clock
        self._rng = rng
        self._lanes: list[_Lane] = [asyncio.Queue(QUEUE) for _ in range(LANES)]

    def recorder(self, component: str) -> "ObjectRecorder":
        """A recorder whose Events name this source."""
        return ObjectRecorder(self, Source(component))

    def put(self, correlator: Correlator, source: Source, notice: Notice) -> None:
        entry = (correlator, source, notice, format_time(self._clock.now()))
        try:
            self._lanes[crc32(notice.ref.uid.encode()) % LANES].put_nowait(entry)
        except asyncio.QueueFull:
            log.info("Event dropped, too many are waiting", extra={"fields": {"reason": notice.reason}})

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._run(lane))

    async def _run(self, lane: "_Lane") -> None:
        while True:
            correlator, source, notice, time = await lane.get()
            decision = correlator.decide(notice, self._clock.monotonic())
            if decision is not None:
                await self._deliver(correlator, source, replace(notice, message=decision.message), time, decision)

    async def _deliver(
        self, correlator: Correlator, source: Source, notice: Notice, time: str, decision: Decision
    ) -> None:
        for attempt in range(ATTEMPTS):
            try:
                correlator.written(decision.key, await self._events.write(source, notice, time, decision.seen))
                return
            except ApiError as error:
                fields = {"reason": notice.reason, "object": notice.ref.name, "err": str(error)}
                log.info("Server rejected event", extra={"fields": fields})
                return
            except TransportError as error:
                log.info("Unable to write event", extra={"fields": {"err": str(error), "attempt": attempt + 1}})
                await self._clock.sleep(PAUSE_S * (self._rng.random() if attempt == 0 else 1.0))


_Lane = asyncio.Queue[tuple[Correlator, Source, Notice, str]]


class ObjectRecorder:
    """Emits the Events of one source (a controller)."""

    def __init__(self, writer: EventWriter, source: Source) -> None:
        self._writer = writer
        self._source = source
        self._correlator = Correlator()

    def emit(self, notice: Notice) -> None:
        """Queue an Event; returns at once."""
        self._writer.put(self._correlator, self._source, notice)
