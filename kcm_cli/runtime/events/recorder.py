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

from kcm_cli.api.core import EVENTS, Event
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.client import STRATEGIC_MERGE, Client
from kcm_cli.rest.errors import ApiError, NotFound
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.events.correlate import Correlator, Decision, Seen

log = logging.getLogger(__name__)

QUEUE = 1000
LANES = 4
"""Events of one object stay in order; those of different objects may overtake each other."""
ATTEMPTS = 12
PAUSE_S = 10.0


class EventWriter:
    """One client's Events on their way out. Recorders of several sources may share it."""

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._lanes: list[_Lane] = [asyncio.Queue(QUEUE) for _ in range(LANES)]
        self._last_ns = 0

    def recorder(self, component: str) -> "ObjectRecorder":
        """A recorder whose Events name this source."""
        return ObjectRecorder(self, component)

    def put(self, correlator: Correlator, component: str, notice: Notice) -> None:
        entry = (correlator, component, notice, format_time(self._clock.now()))
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
            correlator, component, notice, time = await lane.get()
            decision = correlator.decide(notice, self._clock.monotonic())
            if decision is not None:
                await self._deliver(correlator, component, replace(notice, message=decision.message), time, decision)

    async def _deliver(
        self, correlator: Correlator, component: str, notice: Notice, time: str, decision: Decision
    ) -> None:
        for attempt in range(ATTEMPTS):
            try:
                correlator.written(decision.key, await self._write(component, notice, time, decision.seen))
                return
            except ApiError as error:
                fields = {"reason": notice.reason, "object": notice.ref.name, "err": str(error)}
                log.info("Server rejected event", extra={"fields": fields})
                return
            except TransportError as error:
                log.info("Unable to write event", extra={"fields": {"err": str(error), "attempt": attempt + 1}})
                await self._clock.sleep(PAUSE_S * (self._rng.random() if attempt == 0 else 1.0))

    async def _write(self, component: str, notice: Notice, time: str, seen: Seen) -> Seen:
        namespace = notice.ref.namespace or "default"
        if seen.count > 0:
            patch: Doc = {"count": seen.count + 1, "lastTimestamp": time, "message": notice.message}
            try:
                event = await self._client.patch(EVENTS, namespace, seen.name, patch, content_type=STRATEGIC_MERGE)
                return _seen(event, seen.count + 1, seen.first)
            except NotFound:
                pass  # it has expired on the server: start over, keeping the count
        body = event_doc(component, notice, self._name(notice.ref), seen.first or time, time, seen.count + 1)
        return _seen(await self._client.create(EVENTS, namespace, body), seen.count + 1, seen.first or time)

    def _name(self, ref: EventRef) -> str:
        """``object.time``: unique per writer, since the time never repeats."""
        now_ns = int(self._clock.now().timestamp() * 1e6) * 1000
        self._last_ns = max(self._last_ns + 1, now_ns)
        return f"{ref.name}.{self._last_ns:x}"


def _seen(event: Event, count: int, first: str) -> Seen:
    return Seen(event.name, event.metadata.resource_version, count, first)


def event_doc(component: str, notice: Notice, name: str, first: str, last: str, count: int) -> Doc:
    """The Event as it is created."""
    ref = notice.ref
    involved: Doc = {"kind": ref.kind, "name": ref.name, "uid": ref.uid, "apiVersion": ref.api_version}
    optional = (("namespace", ref.namespace), ("resourceVersion", ref.resource_version), ("fieldPath", ref.field_path))
    involved.update({key: value for key, value in optional if value})
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": ref.namespace or "default"},
        "involvedObject": involved,
        "reason": notice.reason,
        "message": notice.message[:1024],
        "source": {"component": component},
        "firstTimestamp": first,
        "lastTimestamp": last,
        "count": count,
        "type": notice.type,
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": "",
    }


_Lane = asyncio.Queue[tuple[Correlator, str, Notice, str]]


class ObjectRecorder:
    """Emits the Events of one source (a controller)."""

    def __init__(self, writer: EventWriter, component: str) -> None:
        self._writer = writer
        self._component = component
        self._correlator = Correlator()

    def emit(self, notice: Notice) -> None:
        """Queue an Event; returns at once."""
        self._writer.put(self._correlator, self._component, notice)
