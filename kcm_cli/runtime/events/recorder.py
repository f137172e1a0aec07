"""Writes Events in the background, a few at a time, so that a controller never waits for one.

Guarantees: ``emit`` returns at once; Events of one object are written in order. Not guaranteed: that an Event is
written. A full queue drops new Events, and an Event is dropped after a dozen attempts.

upstream: staging/src/k8s.io/client-go/tools/record/event.go
"""

import asyncio
import logging
import random
from zlib import crc32

from kcm_cli.component.clock import Clock
from kcm_cli.component.logs import V3, V5
from kcm_cli.machinery.kref import KRef
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Notice
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import AlreadyExists, ApiError
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.events.correlate import Correlator, Decision, Emitted, Source
from kcm_cli.runtime.events.counted import CountedEvents, EventNames

log = logging.getLogger(__name__)

QUEUE = 1000
LANES = 4
"""Events of one object stay in order; those of different objects may overtake each other."""
ATTEMPTS, PAUSE_S = 12, 10.0
"""How often an Event is sent, and the time between two attempts; a random part of it after the first."""


class EventWriter:
    """The queue of one client's Events. Recorders of several sources may share it."""

    def __init__(self, client: Client, names: EventNames, clock: Clock, rng: random.Random) -> None:
        self._events = CountedEvents(client)
        self._names = names
        self._clock = clock
        self._rng = rng
        self._lanes: dict[int, _Lane] = {}
        self._opened: asyncio.Queue[_Lane] = asyncio.Queue()

    def recorder(self, component: str, *, level: int = V3) -> "ObjectRecorder":
        """A recorder whose Events name this source, and are logged at this level."""
        return ObjectRecorder(self, Source(component), level)

    def put(self, correlator: Correlator, source: Source, notice: Notice) -> None:
        lane = self._lane(crc32(notice.ref.uid.encode()) % LANES)
        if lane.full():
            log.error("Unable to record event: too many queued events, dropped event", extra=_fields(notice))
            return
        event = Emitted(source, notice, self._names.of(notice.ref), format_time(self._clock.now()))
        lane.put_nowait((correlator, event))

    async def run(self) -> None:
        """Write until cancelled. A lane has a task from its first Event on: most writers never write one."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._write(await self._opened.get()))

    async def flush(self) -> None:
        """Wait until all that was queued is written or given up."""
        for lane in tuple(self._lanes.values()):
            await lane.join()

    def _lane(self, number: int) -> "_Lane":
        lane = self._lanes.get(number)
        if lane is None:
            lane = self._lanes[number] = asyncio.Queue(QUEUE)
            self._opened.put_nowait(lane)
        return lane

    async def _write(self, lane: "_Lane") -> None:
        while True:
            correlator, event = await lane.get()
            try:
                decision = correlator.decide(event, self._clock.monotonic())
                if decision is not None:
                    await self._deliver(event, decision)
            except Exception as error:  # a bug here must not end the process
                log.error("Unable to write event", extra=_fields(event.notice, error), exc_info=error)
            finally:
                lane.task_done()

    async def _deliver(self, event: Emitted, decision: Decision) -> None:
        for attempt in range(ATTEMPTS):
            try:
                await self._events.write(event, decision)
                return
            except ApiError as error:
                harmless = isinstance(error, AlreadyExists) or error.namespace_terminating
                level = V5 if harmless else logging.ERROR
                log.log(level, "Server rejected event (will not retry!)", extra=_fields(event.notice, error))
                return
            except TransportError as error:
                log.error("Unable to write event (may retry after sleeping)", extra=_fields(event.notice, error))
            if attempt < ATTEMPTS - 1:
                await self._clock.sleep(PAUSE_S * (self._rng.random() if attempt == 0 else 1.0))
        log.error("Unable to write event (retry limit exceeded!)", extra=_fields(event.notice))


def _fields(notice: Notice, error: Exception | None = None) -> dict[str, dict[str, object]]:
    fields: dict[str, object] = {"object": f"{notice.ref.namespace}/{notice.ref.name}", "reason": notice.reason}
    if error is not None:
        fields["err"] = str(error)
    return {"fields": fields}


_Lane = asyncio.Queue[tuple[Correlator, Emitted]]


class ObjectRecorder:
    """Emits the Events of one source (a controller)."""

    def __init__(self, writer: EventWriter, source: Source, level: int) -> None:
        self._writer = writer
        self._source = source
        self._level = level
        self._correlator = Correlator()

    def emit(self, notice: Notice) -> None:
        """Queue an Event; returns at once."""
        if log.isEnabledFor(self._level):
            log.log(self._level, "Event occurred", extra={"fields": _occurred(notice)})
        self._writer.put(self._correlator, self._source, notice)


def _occurred(notice: Notice) -> dict[str, object]:
    ref = notice.ref
    return {
        "object": KRef(ref.name, ref.namespace),
        "fieldPath": ref.field_path,
        "kind": ref.kind,
        "apiVersion": ref.api_version,
        "type": notice.type,
        "reason": notice.reason,
        "message": notice.message,
    }
