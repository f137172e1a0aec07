"""The door: the only way from a controller to the API server.

Reads pass through unchanged. Every write goes through one method, ``Door.raw``. There it is named, and counted once
(retries are not counted). At verbosity 2 each write is logged with its answer: who wrote what, why, and for which
owner. Events, which have a line of their own, reviews and tokens are logged at 4. Bodies and texts of refusals are not
logged: they may have values of Secrets.

The results of creations, updates, patches and deletions are recorded for the key that the worker is syncing
(``own_writes``).

upstream: none; each controller holds a clientset. The nearest is PodControlInterface in
pkg/controller/controller_utils.go.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import Resource
from kcm_cli.api.well_known import GROUPS
from kcm_cli.component.logs import V2, V4
from kcm_cli.component.metrics import Registry
from kcm_cli.engine.own_writes import CREATE, DELETE, UPDATE, acting
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.envelope import MEDIA_TYPE
from kcm_cli.machinery.errors import MachineryError
from kcm_cli.machinery.kref import KRef
from kcm_cli.machinery.meta import Object, object_key
from kcm_cli.machinery.raw_fields import restored
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Invalid, body_of, from_response
from kcm_cli.rest.request_parts import Change, object_path
from kcm_cli.rest.transport import Request, RequestError, Response
from kcm_cli.runtime.cause_ring import QUIET, CauseRing, Wrote, identity, refusal
from kcm_cli.runtime.causes import RECORDED, working

if TYPE_CHECKING:
    from kcm_cli.runtime.spans import Sending, SpanContext

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
V = TypeVar("V")

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PARTS_OF_NAMESPACES = frozenset({"status", "finalize"})
_COUNTER = "kcm_controller_writes_total"
CUSTOM = "custom"
_OF_OTHERS = frozenset(("", "Scale"))
"""Kinds that do not say of what: the resource is logged instead."""
_REASONS = {"status": "status changed", "scale": "scaled", "finalize": "finalized"}
"""For writes to subresources that give no reason of their own."""


class Write(msgspec.Struct, frozen=True, gc=False):
    """One write. ``resource``: plural with the subresource as RBAC has it (``pods/binding``); ``verb``: RBAC's."""

    controller: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    request: Request


class Door(Client):
    """A controller's client, made of another one; see the module. ``count`` is called with each write before it is
    sent, ``ring`` records it with its answer."""

    def __init__(
        self,
        client: Client,
        controller: str,
        count: Callable[[Write], None] = lambda write: None,
        ring: CauseRing | None = None,
    ) -> None:
        vars(self).update(vars(client))
        self._controller = controller
        self._count = count
        self._ring = ring

    def raw(self, request: Request) -> Coroutine[Any, Any, Response]:
        """See ``Client.raw``."""
        if request.method in _READS:
            return super().raw(self._of_sync(request))
        write = write_of(self._controller, request)
        self._count(write)
        if self._ring is None or write.resource in QUIET:
            return self._sent(replace(write, request=self._of_sync(request)))
        return self._recorded(write, self._ring)

    def _sent(self, write: Write) -> Coroutine[Any, Any, Response]:
        answer = super().raw(write.request)
        return _logged(write, answer) if log.isEnabledFor(V2) else answer

    def _of_sync(self, request: Request) -> Request:
        """What is not recorded itself belongs to the trace of its sync, if that is recorded by now."""
        spans, work = self._ring.spans if self._ring is not None else None, working()
        context = spans.context(work.number) if spans is not None and work is not None else None
        return _traced(request, context) if context is not None else request

    async def _recorded(self, write: Write, ring: CauseRing) -> Response:
        """Record a write once it is answered, or has failed."""
        at, work = ring.now(), working()
        sync = work.noted() if work is not None else 0
        context = None
        if ring.spans is not None:
            context = ring.spans.sent(_sending(write, sync, at))
            write = replace(write, request=_traced(write.request, context))
        token = RECORDED.set(True)
        try:
            response = await self._sent(write)
        except BaseException as error:  # also a cancellation: the write may have taken effect
            self._wrote(ring, context, _entry(ring, write, sync, at, Response(0, {}, b""), type(error).__name__))
            raise
        finally:
            RECORDED.reset(token)
        self._wrote(ring, context, _entry(ring, write, sync, at, response))
        return response

    def _wrote(self, ring: CauseRing, context: "SpanContext | None", entry: Wrote) -> None:
        ring.put(entry)
        if ring.spans is not None and context is not None:
            ring.spans.wrote(entry, context)

    async def update(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        doc: Doc | bytes,
        *,
        subresource: str = "",
        reason: str = "",
    ) -> T:
        """See ``Client.update``. A refused update of a kind with RawExtensions is repeated with their stored bytes."""
        try:
            return await super().update(resource, namespace, name, doc, subresource=subresource, reason=reason)
        except Invalid:
            sent = doc if isinstance(doc, bytes) else codec.encode(doc)
            exact = await self._with_stored_bytes(resource, namespace, name, sent) if resource.raw_fields else sent
            if exact == sent:
                raise
        return await super().update(resource, namespace, name, exact, subresource=subresource, reason=reason)

    async def _with_stored_bytes(self, resource: Resource[Any], namespace: str, name: str, sent: bytes) -> bytes:
        request = Request("GET", object_path(resource, namespace, name, ""), (), {"accept": MEDIA_TYPE})
        try:
            return codec.encode(restored(codec.decode_doc(sent), await self.call(request), resource.raw_fields))
        except (MachineryError, RequestError):
            return sent  # the refusal is what is reported

    async def _change(self, change: Change, request: Request, read_answer: Callable[[bytes], V]) -> V:
        """Send a write, and record its result for the key that is being synced.

        Posts to subresources are not recorded: their effect shows in other objects.
        """
        noting = acting()
        if noting is None or (change.verb == CREATE and change.subresource):
            return read_answer(body_of(await self.raw(request), request))
        own, key = noting
        place = change.resource, change.namespace, change.name
        shown = own.shown_uid(*place) if change.verb != CREATE else ""
        try:
            answer = read_answer(body_of(await self.raw(request), request))
        except RequestError as error:
            if change.verb == CREATE:
                own.not_created(key, change.resource, change.namespace, change.body, error)
            else:
                own.failed(key, *place, error, shown)
            raise
        if change.verb == DELETE:
            own.deleted(key, *place, change.uid)
        elif isinstance(answer, Object):
            own.wrote(key, change.resource, answer, CREATE if change.verb == CREATE else UPDATE)
        return answer


def write_of(controller: str, request: Request) -> Write:
    """What a request writes, by its method and path."""
    parts = request.path.strip("/").split("/") + [""] * 6
    group, at, namespace = ("", 2, "") if parts[0] == "api" else (parts[1], 3, "")
    if parts[at] == "namespaces" and parts[at + 2] and parts[at + 2] not in _PARTS_OF_NAMESPACES:
        namespace, at = parts[at + 1], at + 2
    resource, name, subresource = parts[at : at + 3]
    verb = _VERBS.get(request.method) or request.method.lower()
    if verb == "delete" and not name:
        verb = "deletecollection"
    if subresource:
        resource = f"{resource}/{subresource}"
    return Write(controller, verb, group, resource, namespace, name, request)


def _sending(write: Write, sync: int, at: float) -> "Sending":
    # imported here: most managers have no spans
    from kcm_cli.runtime.spans import Sending

    name = write.name or _name_sent(write.request.body)
    key = object_key(write.namespace, name)
    return Sending(sync, at, write.controller, write.verb, write.request.kind, key)


def _traced(request: Request, context: "SpanContext") -> Request:
    return replace(request, headers={**request.headers, "traceparent": context.traceparent})


async def _logged(write: Write, answer: Awaitable[Response]) -> Response:
    """Log a write with its answer, or that there was none."""
    level = V4 if write.resource in QUIET else V2
    try:
        response = await answer
    except RequestError as error:
        log.log(level, "Write was not answered", extra={"fields": {**_fields(write, write.name), "err": str(error)}})
        raise
    if not log.isEnabledFor(level):
        return response
    name = write.name
    if write.verb == CREATE and not name and response.status < 300:
        name, _, _ = _identity_of(response.body)
    fields = {**_fields(write, name), "code": response.status}
    if response.status < 300:
        log.log(level, "Wrote object", extra={"fields": fields})
    else:
        fields["err"] = getattr(from_response(response, write.request), "reason", "")
        log.log(level, "Write was refused", extra={"fields": fields})
    return response


def _fields(write: Write, name: str) -> dict[str, object]:
    """Who writes what, for which owner, and why."""
    request, (plural, _, subresource) = write.request, write.resource.partition("/")
    owner = _owner(write, name)
    fields: dict[str, object] = {"logger": write.controller, "verb": write.verb}
    fields["kind"] = plural if request.kind in _OF_OTHERS else request.kind
    fields["object"] = KRef(name, write.namespace)
    if subresource:
        fields["subresource"] = subresource
    if owner:
        fields["owner"] = owner
    fields["reason"] = request.reason or _REASONS.get(subresource, "")
    return fields


def _owner(write: Write, name: str) -> str:
    """What a write is done for; "" for the object itself, or where that is not known."""
    work = working()
    if write.request.owner or work is None or not work.kind:
        return write.request.owner
    itself = (work.kind, work.key) == (write.request.kind, object_key(write.namespace, name))
    return "" if itself else f"{work.kind} {work.key}"


class _NamedMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    generate_name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _NamedMeta = _NamedMeta()


def _name_sent(body: bytes) -> str:
    """The name of an object to create, or its generateName; "" for what is no JSON."""
    sent = codec.decode_or_none(body, _Named)
    return "" if sent is None else sent.metadata.name or sent.metadata.generate_name


class _Details(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _Identity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """As little of the metadata as possible: it is decoded for each write."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Answer(msgspec.Struct, frozen=True, gc=False):
    """An object, or the Status of a deletion."""

    metadata: _Identity | None = None
    details: _Details | None = None


_FAR = 2048
"""Bytes within which an answer has name, uid and version: it begins with them."""
_IDENTITY = re.compile(
    rb'\{(?:"(?:kind|apiVersion)":"[^"\\]*",)*"metadata":\{"name":"([^"\\]*)",'
    rb'(?:"(?:generateName|namespace|selfLink)":"[^"\\]*",)*"uid":"([^"\\]*)","resourceVersion":"([^"\\]*)"'
)


def identity_in(body: bytes) -> tuple[str, str, str] | None:
    """Name, uid and version of an object, from the beginning of its JSON in the form that API servers write. To decode
    a pod takes several times as long. None for any other form."""
    found = _IDENTITY.match(body, 0, _FAR)
    if found is None:
        return None
    name, uid, version = found.groups()
    return name.decode("utf-8", "replace"), uid.decode("utf-8", "replace"), version.decode("utf-8", "replace")


def _identity_of(body: bytes) -> tuple[str, str, str]:
    """Name, uid and version in an answer, whatever its form; empty where it has none."""
    if (found := identity_in(body)) is not None:
        return found
    answer = codec.decode_or_none(body, _Answer)
    if answer is None:
        return "", "", ""
    if answer.details is not None:
        return "", answer.details.uid, ""
    meta = answer.metadata or _Identity()
    return meta.name, meta.uid, meta.resource_version


def _entry(ring: CauseRing, write: Write, sync: int, at: float, response: Response, refused: str = "") -> Wrote:
    request, name, uid, version = write.request, write.name, "", ""
    if 200 <= response.status < 300:
        named, uid, version = _identity_of(response.body)
        name = name or named
    elif response.status:
        error = from_response(response, request)
        refused = refusal(error.reason, error.message)
    name = name or _name_sent(request.body)
    key = object_key(write.namespace, name)
    reason = request.reason or _REASONS.get(write.resource.partition("/")[2], "")
    kind = "" if request.kind in _OF_OTHERS else request.kind
    return Wrote(
        sync,
        at,
        ring.now() - at,
        write.controller,
        write.verb,
        write.group,
        write.resource,
        kind,
        key,
        response.status,
        identity(uid),
        identity(version),
        reason,
        _owner(write, name),
        refused,
    )


def count_writes(registry: Registry) -> Callable[[Write], None]:
    """Counts writes as ``kcm_controller_writes_total{controller, verb, resource}``, refused and lost ones included. All
    resources of other API groups than Kubernetes' own are ``custom``: definitions come and go."""
    family = registry.counter(
        _COUNTER, "Writes that a controller sent to the API server.", labels=("controller", "verb", "resource")
    )

    def count(write: Write) -> None:
        family.labels(write.controller, write.verb, write.resource if write.group in GROUPS else CUSTOM).inc()

    return count
