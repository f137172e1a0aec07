"""Events of simulated components, written in the background: kubelets' in the old form, the scheduler's in the new.

Guarantees: telling returns at once; what cannot be kept up with is dropped, so that Events never cost more than
the pods that they are about.

upstream: staging/src/k8s.io/client-go/tools/record, staging/src/k8s.io/client-go/tools/events
"""

import asyncio
import logging
import random
from collections import OrderedDict, deque
from dataclasses import dataclass, replace

from kcm_cli.api.core import EVENTS
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import DecodeError, Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.times import format_micro_time, format_time
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.client import MERGE, Client
from kcm_cli.rest.errors import ApiError, NotFound
from kcm_cli.rest.ratelimit import TokenBucket
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.events.correlate import Correlator
from kcm_cli.runtime.events.counted import CountedEvents, EventNames, Source, event_doc

log = logging.getLogger(__name__)

WAITING = 1000
ROUTINE_PER_S, ROUTINE_BURST = 20.0, 200
"""Limits of Normal Events of kubelets, all nodes together."""
SERIES = 4096


@dataclass(frozen=True, slots=True)
class Told:
    """An Event to write. ``action`` marks the new form."""

    source: Source
    notice: Notice
    time: str
    micro_time: str
    action: str = ""


def ref_of(api_version: str, kind: str, obj: Object, field_path: str = "") -> EventRef:
    """The object that an Event is about."""
    meta = obj.metadata
    return EventRef(api_version, kind, meta.namespace, meta.name, meta.uid, meta.resource_version, field_path)


class Events:
    """All Events of the simulated components."""

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._names = EventNames(clock)
        self._counted = CountedEvents(client, self._names)
        self._clock = clock
        self._rng = rng
        self._queue: deque[Told] = deque()
        self._there = asyncio.Event()
        self._correlator = Correlator()
        self._routine = TokenBucket(ROUTINE_PER_S, ROUTINE_BURST)
        self._series: OrderedDict[tuple[object, ...], tuple[str, int]] = OrderedDict()

    def kubelet(self, host: str, notice: Notice) -> None:
        """Tell as the kubelet of a node."""
        if notice.type == "Normal" and not self._routine.try_take(self._clock.monotonic()):
            return
        self._put(Source("kubelet", host), notice)

    def scheduler(self, notice: Notice, action: str) -> None:
        """Tell as the scheduler."""
        self._put(Source("default-scheduler"), notice, action)

    def component(self, component: str, notice: Notice) -> None:
        """Tell as some other component."""
        self._put(Source(component), notice)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while self._queue:
                told = self._queue.popleft()
                try:
                    await (self._write_series(told) if told.action else self._write(told))
                except (ApiError, TransportError, DecodeError) as error:
                    fields = {"reason": told.notice.reason, "object": told.notice.ref.name, "err": str(error)}
                    log.debug("Event not written", extra={"fields": fields})
            self._there.clear()
            await self._there.wait()

    def _put(self, source: Source, notice: Notice, action: str = "") -> None:
        if len(self._queue) >= WAITING:
            return
        now = self._clock.now()
        self._queue.append(Told(source, notice, format_time(now), format_micro_time(now), action))
        self._there.set()

    # -- the old form: counted

    async def _write(self, told: Told) -> None:
        decision = self._correlator.decide(told.notice, self._clock.monotonic())
        if decision is None:
            return
        notice = replace(told.notice, message=decision.message)
        self._correlator.written(decision.key, await self._counted.write(told.source, notice, told.time, decision.seen))

    # -- the new form: series

    async def _write_series(self, told: Told) -> None:
        notice = told.notice
        key = (notice.ref.uid, notice.type, notice.reason, told.action)
        known = self._series.get(key)
        namespace = notice.ref.namespace or "default"
        if known is None:
            name = self._names.of(notice.ref)
            await self._client.create(EVENTS, namespace, _new_form(told, name))
            self._remember(key, name, 1)
            return
        name, count = known[0], known[1] + 1
        self._remember(key, name, count)
        if count & (count - 1) == 0:  # told at 2, 4, 8 ...: a pod that waits for days is not worth more
            await self._write_count(told, namespace, name, count)

    async def _write_count(self, told: Told, namespace: str, name: str, count: int) -> None:
        series: Doc = {"series": {"count": count, "lastObservedTime": told.micro_time}}
        try:
            await self._client.patch(EVENTS, namespace, name, series, content_type=MERGE)
        except NotFound:  # somebody has deleted it
            await self._client.create(EVENTS, namespace, {**_new_form(told, name), **series})

    def _remember(self, key: tuple[object, ...], name: str, count: int) -> None:
        self._series[key] = (name, count)
        self._series.move_to_end(key)
        if len(self._series) > SERIES:
            self._series.popitem(last=False)


def _new_form(told: Told, name: str) -> Doc:
    doc = event_doc(told.source, told.notice, name, "", "", 0)
    for field in ("count", "firstTimestamp", "lastTimestamp"):
        del doc[field]
    doc["source"] = {}
    doc["eventTime"] = told.micro_time
    doc["action"] = told.action
    doc["reportingInstance"] = f"{told.source.component}-sandbox"
    return doc
