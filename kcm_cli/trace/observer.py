"""Observes a cluster: lists and watches what a target may follow from, whichever manager runs there.

It sends get, list and watch only, and decodes only the fields of ``views``. A kind that may not be read is named in
``gaps``, and the others are read.

upstream: none
"""

import asyncio
import random
from typing import Any

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.api.short_names import kind_of
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.listing import list_readable
from kcm_cli.rest.reading import server_time
from kcm_cli.rest.transport import Request, RequestError
from kcm_cli.runtime.informer import Informer, Scope
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target
from kcm_cli.trace.views import EVENTS, KINDS, CoreV1Event, Seen

_LEAST_S, _MOST_S = 2.0, 366 * 86_400.0
"""How far the clocks of two machines differ that need it: answers have full seconds, and some have no time."""
_SYNC_S = 30.0
"""How long a kind may take to be listed before it is followed without the others waiting for it."""


class _Part(msgspec.Struct, frozen=True):
    """What is read of a resource."""

    resource: Resource[Any]
    namespace: str = ""
    field_selector: str = ""
    metadata_only: bool = False


class Wanted(msgspec.Struct, frozen=True):
    """A target, with its kind as the API has it. other: its resource, if it is none of KINDS."""

    target: Target
    other: Resource[Seen] | None = None


def unresolved(target: Target) -> Wanted:
    """A target whose kind is not looked for: objects of KINDS are known to have a namespace or none."""
    known = next((one for one in KINDS if target.is_kind(one.kind)), None)
    return Wanted(target if known is None or known.namespaced else Target(known.kind, "", target.name))


async def resolve(client: Client, target: Target) -> Wanted:
    """Look for the kind of a target. Raises RequestError, and FormatError for a kind that is not served."""
    if any(target.is_kind(one.kind) for one in KINDS):
        return unresolved(target)
    known = await discover(client)
    served = known.named(target.kind)
    if served is None:
        near = known.near(target.kind)
        raise FormatError(f"{target.kind}: the cluster serves no such kind{near and f' (did you mean {near}?)'}")
    kind = kind_of(f"{served.kind}.{served.gvr.group}")
    resource = Resource(served.gvr, kind, Seen, served.namespaced)
    return Wanted(Target(kind, target.namespace if served.namespaced else "", target.name), resource)


def _parts(wanted: Wanted) -> list[_Part]:
    """What is read for a target: all that is in its namespace, the namespace, and the nodes."""
    found, target = [], wanted.target
    cluster_scoped = not target.namespace
    if wanted.other is not None and wanted.other.plural != "secrets":
        selector = f"metadata.name={target.name}"
        found.append(_Part(wanted.other, target.namespace, selector, metadata_only=True))
    for resource in KINDS:
        if resource.namespaced and not cluster_scoped:
            found.append(_Part(resource, target.namespace))
        elif resource.kind == "Node":
            found.append(_Part(resource))
        elif resource.kind == "Namespace":
            name = target.name if cluster_scoped and target.is_kind("Namespace") else target.namespace
            found.append(_Part(resource, field_selector=f"metadata.name={name}"))
    if not cluster_scoped:
        found.append(_Part(EVENTS, target.namespace))
    if cluster_scoped:
        kind = target.kind.partition(".")[0]  # without the group of another API
        found.append(_Part(EVENTS, "default", f"involvedObject.kind={kind}"))
    elif target.namespace != "default":
        found.append(_Part(EVENTS, "default", "involvedObject.kind=Node"))
    return found


class Observer:
    """What was seen of a cluster. gaps: what could not be read, and why. ahead_s: how far the clock of its API server
    is ahead of this one, if that matters."""

    def __init__(self, client: Client, clock: Clock, wanted: Wanted, history: History) -> None:
        self.history = history
        self.gaps: dict[str, str] = {}
        self.ahead_s = 0.0
        self._client = client
        self._clock = clock
        self._parts = _parts(wanted)

    def now(self) -> float:
        """Unix time, by the clock of the API server."""
        return self._clock.now().timestamp() + self.ahead_s

    async def look(self) -> None:
        """List everything once."""
        await self._compare_clocks()
        for part in self._parts:
            try:
                listed = await list_readable(
                    self._client,
                    part.resource,
                    part.namespace,
                    field_selector=part.field_selector,
                    metadata_only=part.metadata_only,
                )
            except RequestError as error:
                self.gaps[part.resource.plural] = str(error)
                continue
            if listed.unknown:
                self.gaps[part.resource.plural] = f"{len(listed.unknown)} objects cannot be decoded"
            for obj in listed.items:
                self._see(part, obj, listed=True)
        read = {part.resource.kind for part in self._parts} - {"Event", "Node", "Namespace"}
        unread = {part.resource.kind for part in self._parts if part.resource.plural in self.gaps}
        self.history.absent(read - unread, self.now())

    async def _compare_clocks(self) -> None:
        """Learn how far the API server's clock, whose times objects and Events have, is ahead of this one."""
        try:
            of_server = server_time(await self._client.answer(Request("GET", "/version")))
        except RequestError:
            return  # the lists say why
        ahead_s = (of_server - self._clock.now()).total_seconds() if of_server is not None else 0.0
        if _LEAST_S < abs(ahead_s) < _MOST_S:
            self.ahead_s = ahead_s

    async def follow(self) -> None:
        """List everything, and watch it until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                informer = self._informer(part)
                group.create_task(informer.run())
                group.create_task(self._await(part, informer))

    async def _await(self, part: _Part, informer: Informer[Any]) -> None:
        """Tell of a kind that is not listed, and take that back when it is."""
        try:
            async with asyncio.timeout(_SYNC_S):
                await informer.synced.wait()
        except TimeoutError:
            trouble = informer.trouble()
            self.gaps[part.resource.plural] = trouble.why if trouble is not None else "it is not listed yet"
            await informer.synced.wait()
            self.gaps.pop(part.resource.plural, None)

    def _informer(self, part: _Part) -> Informer[Any]:
        scope = Scope(part.namespace, field_selector=part.field_selector, metadata_only=part.metadata_only)
        informer: Informer[Any] = Informer(part.resource, self._client, self._clock, random.Random(), scope)
        informer.listen(
            on_add=lambda obj: self._see(part, obj, listed=not informer.synced.is_set()),
            on_update=lambda _, obj: self._see(part, obj, listed=False),
            on_delete=lambda obj: self._lose(part, obj),
        )
        return informer

    def _see(self, part: _Part, obj: Object, *, listed: bool) -> None:
        if isinstance(obj, CoreV1Event):
            self.history.event(obj, self.now())
        elif isinstance(obj, Seen):
            self.history.version(part.resource.kind, obj, self.now(), listed=listed)

    def _lose(self, part: _Part, obj: Object) -> None:
        if isinstance(obj, CoreV1Event):
            self.history.forget_event(obj)
        elif isinstance(obj, Seen):
            self.history.gone(part.resource.kind, obj, self.now())
