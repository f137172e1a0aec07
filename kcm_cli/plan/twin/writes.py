"""Records the writes of each client in the twin.

Events are counted and answered here: nothing in a twin reads them, and they would be a third of all requests.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Protocol

import msgspec

from kcm_cli.api.core import ObjectReference
from kcm_cli.engine.door import write_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import SlimObject
from kcm_cli.plan.answer import owner_of
from kcm_cli.rest.transport import Around, Request, Response, Transport, is_local

USER = "kubectl"
ACTING: ContextVar[str] = ContextVar("acting", default="")
"""The client whose request is being served."""
_READS = ("GET", "HEAD")
_JSON = {"content-type": "application/json"}
_WARNING, _ESCAPED = re.compile(r'299 \S{1,64} "((?:[^"\\]|\\.)*)"'), re.compile(r"\\(.)")


class Write(msgspec.Struct, frozen=True):
    """A request that writes. at_s: seconds since the start of the twin. owner: ``Kind/name`` of the object's
    controller, or else of its first owner. status: the HTTP status. message: that of a rejection."""

    at_s: float
    client: str
    verb: str
    group: str
    resource: str
    subresource: str
    kind: str
    namespace: str
    name: str
    owner: str
    status: int
    message: str = ""

    @property
    def done(self) -> bool:
        return self.status < 300


class Emitted(msgspec.Struct):
    """An Event, and how often it was emitted."""

    at_s: float
    client: str
    type: str
    reason: str
    message: str
    kind: str
    namespace: str
    name: str
    count: int = 1


class Written(msgspec.Struct):
    """All writes of a run, in order. warned: of what the API server has warned the user."""

    now: Callable[[], float]
    pause: Callable[[], Awaitable[object]]
    writes: list[Write] = msgspec.field(default_factory=list)
    events: dict[str, Emitted] = msgspec.field(default_factory=dict)
    warned: list[str] = msgspec.field(default_factory=list)


class _Answer(SlimObject, frozen=True, gc=False, kw_only=True):
    kind: str = ""
    message: str = ""


class _Event(SlimObject, frozen=True, gc=False, kw_only=True):
    """An Event of either API group."""

    type: str = ""
    reason: str = ""
    message: str = ""
    note: str = ""
    involved_object: ObjectReference | None = None
    regarding: ObjectReference | None = None


class Answering(Protocol):
    """Answers some requests instead of the server."""

    def answer(self, request: Request) -> Response | None: ...


class Watched(Around):
    """Implements ``rest.transport.Transport`` for one client, and records its writes.

    metrics: answers requests to the metrics APIs.
    """

    def __init__(self, transport: Transport, client: str, written: Written, metrics: Answering | None = None) -> None:
        super().__init__(transport)
        self.local = is_local(transport)  # watches pass as they are
        self._client = client
        self._written = written
        self._metrics = metrics

    async def send(self, request: Request) -> Response:
        if request.method in _READS:
            measured = self._metrics.answer(request) if self._metrics is not None else None
            await self._written.pause()
            return measured or await self._inner.send(request)
        named = write_of(self._client, request)
        resource, _, subresource = named.resource.partition("/")
        if resource == "events" and named.verb in ("create", "patch"):
            return self._event(request, named.name)
        await self._written.pause()
        token = ACTING.set(self._client)
        try:
            response = await self._inner.send(request)
        finally:
            ACTING.reset(token)
        if self._client == USER:
            self._written.warned += _warnings(response.headers.get("warning", ""))
        answer = _answer(response.body)
        meta = answer.metadata
        refused = response.status >= 300
        if refused and named.verb == "create":  # the answer is a Status: only the request names the object
            meta = _answer(request.body).metadata
        self._written.writes.append(
            Write(
                round(self._written.now(), 3),
                self._client,
                named.verb,
                named.group,
                resource,
                subresource,
                "" if answer.kind == "Status" else answer.kind,
                named.namespace,
                named.name or meta.name,
                owner_of(meta.owner_references),
                response.status,
                answer.message if refused else "",
            )
        )
        return response

    def _event(self, request: Request, name: str) -> Response:
        event = codec.decode(request.body, _Event)
        events = self._written.events
        if name in events:
            events[name].count += 1
            events[name].message = event.message or event.note or events[name].message
        elif not name:
            name = event.name
            about = event.involved_object or event.regarding or ObjectReference()
            events[name] = Emitted(
                round(self._written.now(), 3),
                self._client,
                event.type,
                event.reason,
                event.message or event.note,
                about.kind,
                about.namespace,
                about.name,
            )
        kept = {"metadata": {"name": name, "namespace": event.namespace, "resourceVersion": "1"}}
        return Response(200 if request.method == "PATCH" else 201, _JSON, codec.encode(kept))


def _warnings(header: str) -> Iterator[str]:
    """The texts of a Warning header."""
    return (_ESCAPED.sub(r"\1", found) for found in _WARNING.findall(header))


def _answer(body: bytes) -> _Answer:
    return codec.decode_or_none(body, _Answer) or _Answer()
