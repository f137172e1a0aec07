"""The scheduler's Events, in events.k8s.io form: repeated Events about the same object become a series.

Guarantees: emitting never waits. The first hundred Events are written at once, further ones at 50 a second. If a
thousand are waiting, more are dropped, as by kube-scheduler, and do not count as emitted. Of repeated Events, the first
is written, the second makes it a series of two, and the count is written again after six minutes without a repetition,
otherwise every half hour. Writes that fail for lack of a connection are retried.

upstream: staging/src/k8s.io/client-go/tools/events/event_broadcaster.go
"""

import asyncio
import logging
from functools import partial

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.machinery.times import format_micro_time
from kcm_cli.planning.actions import STRATEGIC_MERGE, EventRef, Notice
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError, NotFound
from kcm_cli.rest.ratelimit import TokenBucket
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.events.counted import EventNames

log = logging.getLogger(__name__)

EVENTS = Resource(GVR("events.k8s.io", "v1", "events"), "Event", PartialObject)
WAITING = 1000
QPS, BURST = 50.0, 100
"""Of the client that kube-scheduler writes Events with, unless configured."""
FINISHED_S, REFRESH_S = 360.0, 1800.0
RETRY_S, MOST_TRIES = 10.0, 12

_Key = tuple[EventRef, str, str, str]


class _Emitted(msgspec.Struct, frozen=True):
    """An emitted Event: once, or ``count`` times until ``last_at``."""

    notice: Notice
    action: str
    name: str
    time: str
    last_at: float
    count: int = 1
    last_time: str = ""
    tries: int = 0

    def series(self) -> Doc:
        return {"series": {"count": self.count, "lastObservedTime": self.last_time}}


class Recorder:
    """Emits Events of one component. ``names``: the names of Events, shared by all recorders."""

    def __init__(self, client: Client, names: EventNames, clock: Clock, component: str, instance: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._instance = instance
        self._names = names
        self._known: dict[_Key, _Emitted] = {}
        self._queue: asyncio.Queue[_Emitted] = asyncio.Queue(WAITING)
        self._limiter = TokenBucket(QPS, BURST)

    def emit(self, notice: Notice, action: str) -> None:
        """Emit an Event, unless too many are waiting."""
        key = (notice.ref, notice.type, notice.reason, action)
        known = self._known.get(key)
        if known is None and self._queue.full():
            self._drop(notice)
            return
        time, now = format_micro_time(self._clock.now()), self._clock.monotonic()
        if known is None:
            emitted = _Emitted(notice, action, self._names.of(notice.ref), time, now)
        else:
            emitted = replace(known, count=known.count + 1, last_time=time, last_at=now)
        self._known[key] = emitted
        if emitted.count <= 2:
            self._put(emitted)

    async def run(self) -> None:
        """Write Events until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_all(), name="scheduler events")
            group.create_task(self._finish(), name="end of event series")
            group.create_task(self._refresh(), name="refresh of event series")

    def _put(self, emitted: _Emitted) -> None:
        try:
            self._queue.put_nowait(emitted)
        except asyncio.QueueFull:
            self._drop(emitted.notice)

    def _drop(self, notice: Notice) -> None:
        log.debug("Event dropped", extra={"fields": {"object": notice.ref.name}})

    async def _write_all(self) -> None:
        while True:
            emitted = await self._queue.get()
            if wait_s := self._limiter.reserve(self._clock.monotonic()):
                await self._clock.sleep(wait_s)
            fields = {"reason": emitted.notice.reason, "object": emitted.notice.ref.name}
            try:
                await self._write(emitted)
            except ApiError as error:
                log.debug("Event not written", extra={"fields": {**fields, "err": str(error)}})
            except TransportError as error:
                log.debug("Event not written yet", extra={"fields": {**fields, "err": str(error)}})
                if emitted.tries + 1 < MOST_TRIES:
                    self._clock.call_later(RETRY_S, partial(self._put, replace(emitted, tries=emitted.tries + 1)))
            except Exception as error:  # it costs the other Events nothing
                log.error("Unable to write event", extra={"fields": fields}, exc_info=error)

    async def _write(self, emitted: _Emitted) -> None:
        namespace = emitted.notice.ref.namespace or "default"
        series = emitted.series() if emitted.count > 1 else {}
        if series:
            try:
                await self._client.patch(EVENTS, namespace, emitted.name, series, content_type=STRATEGIC_MERGE)
                return
            except NotFound:  # it was deleted
                pass
        await self._client.create(EVENTS, namespace, {**self._doc(emitted, namespace), **series})

    def _doc(self, emitted: _Emitted, namespace: str) -> Doc:
        ref = emitted.notice.ref
        regarding: Doc = {"kind": ref.kind, "name": ref.name, "uid": ref.uid, "apiVersion": ref.api_version}
        optional = (("namespace", ref.namespace), ("resourceVersion", ref.resource_version))
        regarding.update({key: value for key, value in optional if value})
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": emitted.name, "namespace": namespace},
            "eventTime": emitted.time,
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": emitted.action,
            "reason": emitted.notice.reason,
            "regarding": regarding,
            "note": emitted.notice.message[:1024],
            "type": emitted.notice.type,
        }

    async def _finish(self) -> None:
        """End series without repetitions. A later Event starts a new one."""
        while True:
            await self._clock.sleep(FINISHED_S)
            before = self._clock.monotonic() - FINISHED_S
            for key, emitted in list(self._known.items()):
                if emitted.last_at < before:
                    del self._known[key]
                    if emitted.count > 1:
                        self._put(emitted)

    async def _refresh(self) -> None:
        """Write active series again, so that the API server does not expire them."""
        while True:
            await self._clock.sleep(REFRESH_S)
            for emitted in list(self._known.values()):
                if emitted.count > 1:
                    self._put(emitted)
