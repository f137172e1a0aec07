"""A client of one API server: verbs on resources, typed answers, typed errors.

Guarantees: each request waits for the client's own limit (QPS and burst, in order of arrival); 429 and 5xx
with a Retry-After header are sent again after that time, up to MAX_RETRIES times, as are GETs whose
connection broke; an answer other than 2xx raises ``errors.ApiError``, no answer ``transport.TransportError``, one
that cannot be read its kind ``transport.Unreadable``: all of them are ``transport.RequestError``.
Watches are not limited. Nothing is decoded that the caller does not ask for.

Not guaranteed: that a write which raised TransportError did not take effect (see ``transport.Unreachable``).

upstream: staging/src/k8s.io/client-go/rest/{request,with_retry}.go
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import Clock
from kcm_cli.component.logs import V3, V6
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.envelope import MEDIA_TYPE
from kcm_cli.machinery.meta import Object, View
from kcm_cli.planning.actions import APPLY, JSON_PATCH, MERGE, STRATEGIC_MERGE
from kcm_cli.rest import errors
from kcm_cli.rest.metrics import NO_METRICS, RequestMetrics
from kcm_cli.rest.ratelimit import Limiter, faster
from kcm_cli.rest.reading import read, read_named, read_object
from kcm_cli.rest.request_parts import Change, Query, delete_options, given, object_path
from kcm_cli.rest.transport import (
    ConnectionLost,
    Request,
    Response,
    Stream,
    TimedOut,
    Transport,
    TransportError,
    is_local,
)

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
V = TypeVar("V")

MAX_RETRIES = 10
JSON_TYPE = "application/json"
_AS_METADATA = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_AS_METADATA_LIST = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_LOST_WAIT_S = 1.0
_WORTH_LOGGING_S = 0.05
_LONG_S = 1.0
_TELL_PERIOD_S = 10.0
_THROTTLED = "client-side throttling, not priority and fairness"
_REFUSAL_LIMIT, _REFUSAL_S = 64 * 1024, 70.0
ERROR_CODE = "<error>"


_REFUSALS = (errors.NotAcceptable, errors.UnsupportedMediaType)
"""Answers of a server, or a proxy, that does not know protobuf, although it could answer in JSON."""


def _accept(form: str, *, packed: bool) -> str:
    """An Accept header. form: the parameters of what objects are turned into. JSON is always accepted, too, and whole
    objects in place of metadata."""
    types = [f"{MEDIA_TYPE}{form}"] if packed else []
    return ",".join(dict.fromkeys((*types, f"{JSON_TYPE}{form}", JSON_TYPE)))


class _Answer(View, frozen=True, gc=False):
    """The answer to a deletion: the object or a Status. Neither is read."""


class Client:
    """One user agent's access to an API server. Cheap: many clients may share a transport."""

    def __init__(
        self,
        transport: Transport,
        *,
        limiter: Limiter,
        user_agent: str,
        clock: Clock,
        metrics: RequestMetrics = NO_METRICS,
        protobuf: bool = False,
    ) -> None:
        self.local = is_local(transport)
        self._transport = transport
        self._limiter = limiter
        self._clock = clock
        self._metrics = metrics
        self._logged_at = float("-inf")
        self._accept_json: Mapping[str, str] = {"accept": JSON_TYPE, "user-agent": user_agent}
        self._protobuf = protobuf and not self.local  # a server in this process has its objects in JSON
        self._forms = {
            (form, packed): {**self._accept_json, "accept": _accept(form, packed=packed)}
            for form in ("", _AS_METADATA, _AS_METADATA_LIST)
            for packed in (False, True)
        }
        self._refused: set[GVR] = set()
        self._bodies: Mapping[str, Mapping[str, str]] = {
            kind: {**self._accept_json, "content-type": kind}
            for kind in (JSON_TYPE, STRATEGIC_MERGE, MERGE, JSON_PATCH, APPLY)
        }
        self._json_body = self._bodies[JSON_TYPE]

    def faster(self, qps: float, burst: int) -> Self:
        """A client of the same user for bulk work, with its own rate limit: this one's, multiplied."""
        made = copy(self)
        made._limiter = faster(self._limiter, qps, burst)
        return made

    # -- reading. Lists and watches are asked for in protobuf for kinds that can be read in it, unless JSON is wanted

    async def get(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> T:
        """One object. Raises NotFound."""
        query = (("resourceVersion", resource_version),) if resource_version else ()
        headers = self._forms[_AS_METADATA if metadata_only else "", False]
        path = object_path(resource, namespace, name, subresource)
        body = await self._call(Request("GET", path, query, headers))
        return read_object(resource, body, name, subresource)

    async def find(self, resource: Resource[T], namespace: str, name: str, *, metadata_only: bool = False) -> T | None:
        """One object, or None where the server has no object of this name."""
        try:
            return await self.get(resource, namespace, name, metadata_only=metadata_only)
        except errors.NotFound:
            return None

    async def get_doc(self, resource: Resource[Any], namespace: str, name: str, *, subresource: str = "") -> Doc:
        """One object as the server sent it. Raises NotFound."""
        path = object_path(resource, namespace, name, subresource)
        return read_named(resource, await self._call(Request("GET", path, (), self._accept_json)), name, subresource)

    async def list_page(  # noqa: PLR0913  # the parameters of a list, as ListOptions has them
        self,
        resource: Resource[Any],
        namespace: str = "",
        *,
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> bytes:
        """A list, or one page of it (``limit``), as bytes: see ``listing.read_page``.

        An empty namespace lists all of them. Raises Expired where the continue token is too old.
        """
        pairs = (
            ("limit", str(limit) if limit else ""),
            ("continue", continue_),
            ("resourceVersion", resource_version),
            ("labelSelector", label_selector),
            ("fieldSelector", field_selector),
        )
        form = _AS_METADATA_LIST if metadata_only else ""
        path, query = resource.gvr.path(namespace), given(pairs)
        if self._packed(resource, metadata_only=metadata_only):
            try:
                return await self._call(Request("GET", path, query, self._forms[form, True]))
            except _REFUSALS:
                self._refused.add(resource.gvr)
        return await self._call(Request("GET", path, query, self._forms[form, False]))

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[Any],
        namespace: str = "",
        *,
        query: Query = (),
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncIterator[Stream]:
        """Open a watch; its chunks are cut anywhere, and its headers tell the form: see ``runtime.frames``. ``query``
        carries resourceVersion and so on.

        Raises ApiError on entry where the server refuses, TransportError on entry and while iterating.
        """
        pairs = (("labelSelector", label_selector), ("fieldSelector", field_selector))
        form = _AS_METADATA if metadata_only else ""
        path, full = resource.gvr.path(namespace), (("watch", "true"), *given(pairs), *query)
        async with AsyncExitStack() as stack:
            stream: Stream | None = None
            if self._packed(resource, metadata_only=metadata_only):
                request = Request("GET", path, full, self._forms[form, True])
                try:
                    stream = await stack.enter_async_context(self.stream(request))
                except _REFUSALS:
                    self._refused.add(resource.gvr)
            if stream is None:
                request = Request("GET", path, full, self._forms[form, False])
                stream = await stack.enter_async_context(self.stream(request))
            yield stream

    def _packed(self, resource: Resource[Any], *, metadata_only: bool) -> bool:
        """Whether to ask for protobuf."""
        wanted = self._protobuf and resource.gvr not in self._refused
        return wanted and resource.reader(metadata_only=metadata_only) is not None

    # -- writing. ``reason`` and ``owner`` are for logs, see ``Request``

    async def create(  # noqa: PLR0913  # an address, a document and its options
        self,
        resource: Resource[T],
        namespace: str,
        doc: Doc | bytes,
        *,
        name: str = "",
        subresource: str = "",
        field_manager: str = "",
        reason: str = "",
    ) -> T:
        """Create an object (or POST to a subresource of ``name``). Raises AlreadyExists and others."""
        if resource.namespaced and not namespace:
            raise ValueError("an empty namespace may not be set during creation")
        path = object_path(resource, namespace, name, subresource) if name else resource.gvr.path(namespace)
        query = (("fieldManager", field_manager),) if field_manager else ()
        body = doc if isinstance(doc, bytes) else codec.encode(doc)
        request = Request("POST", path, query, self._json_body, body, kind=resource.kind, reason=reason)
        change = Change("create", resource, namespace, name, subresource, body=body)
        return await self._change(change, request, lambda answer: read_object(resource, answer, name, subresource))

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
        """Replace an object (or its subresource). Raises Conflict where it has changed since."""
        path = object_path(resource, namespace, name, subresource)
        body = doc if isinstance(doc, bytes) else codec.encode(doc)
        request = Request("PUT", path, (), self._json_body, body, kind=resource.kind, reason=reason)
        change = Change("update", resource, namespace, name, subresource)
        return await self._change(change, request, lambda answer: read_object(resource, answer, name, subresource))

    async def patch(  # noqa: PLR0913  # an address, a patch and its options
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        body: Doc | list[Doc] | bytes,
        *,
        content_type: str = STRATEGIC_MERGE,
        subresource: str = "",
        query: Query = (),
        reason: str = "",
        owner: str = "",
    ) -> T:
        """Patch an object (or its subresource). ``query`` carries fieldManager, force and the like.

        Raises NotFound, Conflict where a version or uid in the body differs, Invalid and others (ApiError).
        """
        path = object_path(resource, namespace, name, subresource)
        data = body if isinstance(body, bytes) else codec.encode(body)
        headers = self._bodies[content_type]
        request = Request("PATCH", path, query, headers, data, kind=resource.kind, reason=reason, owner=owner)
        change = Change("patch", resource, namespace, name, subresource)
        return await self._change(change, request, lambda answer: read_object(resource, answer, name, subresource))

    async def delete(  # noqa: PLR0913  # an address and DeleteOptions
        self,
        resource: Resource[Any],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str | None = None,
        grace_s: int | None = None,
        reason: str = "",
        owner: str = "",
    ) -> None:
        """Delete an object. Raises NotFound, and Conflict where ``uid`` or ``resource_version`` differ."""
        path = object_path(resource, namespace, name, "")
        body = delete_options(uid, resource_version, propagation, grace_s)
        request = Request("DELETE", path, (), self._json_body, body, kind=resource.kind, reason=reason, owner=owner)
        change = Change("delete", resource, namespace, name, uid=uid)
        await self._change(change, request, lambda answer: read(answer, _Answer))

    async def delete_collection(  # noqa: PLR0913  # selectors and DeleteOptions
        self,
        resource: Resource[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
        grace_s: int | None = None,
        reason: str = "",
    ) -> None:
        """Delete all objects that match. Raises MethodNotSupported where the resource cannot."""
        query = given((("labelSelector", label_selector), ("fieldSelector", field_selector)))
        body = delete_options("", "", propagation, grace_s)
        path = resource.gvr.path(namespace)
        request = Request("DELETE", path, query, self._json_body, body, kind=resource.kind, reason=reason)
        read(await self._call(request), _Answer)

    async def _change(self, change: Change, request: Request, read_answer: Callable[[bytes], V]) -> V:
        """Send a write and read its answer. Subclasses override it to observe the result."""
        return read_answer(await self._call(request))

    # -- anything else

    async def call(self, request: Request) -> bytes:
        """Send a custom request with this client's headers; the body of its answer."""
        return await self._call(self._with_headers(request))

    async def ask(self, request: Request, type_: type[V]) -> V:
        """Send a custom request with this client's headers; its answer as a view."""
        return read(await self._call(self._with_headers(request)), type_)

    async def answer(self, request: Request) -> Response:
        """Send a custom request with this client's headers; the answer, whatever its status."""
        return await self.raw(self._with_headers(request))

    async def raw(self, request: Request) -> Response:
        """Send a request as it is (limited and retried); the answer, whatever its status."""
        clock, method = self._clock, request.method
        start, received = clock.monotonic(), 0
        try:
            attempt = 0
            while True:
                throttled_s = self._limiter.reserve(start if attempt == 0 else clock.monotonic())
                if throttled_s > 0.0:
                    await self._wait_turn(request, throttled_s)
                self._metrics.throttled(method, throttled_s)
                response, wait_s = await self._attempt(request, attempt)
                if response is not None and (wait_s is None or attempt == MAX_RETRIES):
                    received = len(response.body)
                    return response
                attempt += 1
                fields = {"delay_s": wait_s, "attempt": attempt, "url": request.path}
                log.debug("Got a Retry-After response", extra={"fields": fields})
                await clock.sleep(wait_s or 0.0)
        finally:
            self._metrics.finished(method, clock.monotonic() - start, received)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Open an endless answer, not limited. Raises ApiError on entry where the server refuses."""
        attempt = 0
        while True:
            async with self._open(request, attempt) as stream:
                if 200 <= stream.status < 300:
                    yield stream
                    return
                refusal = Response(stream.status, stream.headers, await _gather(stream.chunks, request))
            wait_s = _asked_to_wait(refusal)
            if wait_s is None or attempt == MAX_RETRIES:
                raise errors.from_response(refusal, request)
            attempt += 1
            await self._clock.sleep(wait_s)

    async def close(self) -> None:
        """Close the transport (for all clients that share it)."""
        await self._transport.close()

    @asynccontextmanager
    async def _open(self, request: Request, attempt: int) -> AsyncIterator[Stream]:
        code = ERROR_CODE
        try:
            async with self._transport.stream(request) as stream:
                code = str(stream.status)
                self._metrics.answered(request.method, code, None, attempt=attempt)
                yield stream
        except TransportError:
            if code == ERROR_CODE:
                self._metrics.answered(request.method, code, None, attempt=attempt)
            raise

    async def _call(self, request: Request) -> bytes:
        return errors.body_of(await self.raw(request), request)

    async def _attempt(self, request: Request, attempt: int) -> tuple[Response | None, float | None]:
        """The answer, and the seconds after which to ask again (None: not at all)."""
        method, sent = request.method, len(request.body)
        try:
            response = await self._transport.send(request)
        except TransportError as error:
            self._metrics.answered(method, ERROR_CODE, sent, attempt=attempt)
            if method == "GET" and isinstance(error, ConnectionLost) and attempt < MAX_RETRIES:
                return None, _LOST_WAIT_S
            raise
        self._metrics.answered(method, str(response.status), sent, attempt=attempt)
        if log.isEnabledFor(V6):
            fields = {"verb": method, "url": request.path, "status": response.status}
            log.log(V6, "Response", extra={"fields": fields})
        return response, _asked_to_wait(response)

    async def _wait_turn(self, request: Request, wait_s: float) -> None:
        try:
            await self._clock.sleep(wait_s)
        except asyncio.CancelledError:
            self._limiter.cancel(self._clock.monotonic())
            raise
        if wait_s > _WORTH_LOGGING_S:
            self._log_waited(request, wait_s)

    def _log_waited(self, request: Request, wait_s: float) -> None:
        """At verbosity 3; waits of more than a second at every verbosity, but at most every ten seconds."""
        level, now = V3, self._clock.monotonic()
        if wait_s > _LONG_S and now - self._logged_at >= _TELL_PERIOD_S:
            level, self._logged_at = logging.INFO, now
        fields = {"delay_s": round(wait_s, 3), "reason": _THROTTLED, "verb": request.method, "url": request.path}
        log.log(level, "Waited before sending request", extra={"fields": fields})

    def _with_headers(self, request: Request) -> Request:
        headers = {**self._accept_json, **request.headers}
        return replace(request, headers=headers)


def _asked_to_wait(response: Response) -> float | None:
    """Seconds after which the server wants to be asked again."""
    status = response.status
    if status != 429 and status < 500:
        return None
    return errors.retry_after(response.headers)


async def _gather(chunks: AsyncIterator[bytes], request: Request) -> bytes:
    """The body of a refusal, up to the limit. Raises TransportError."""
    body = b""
    try:
        async with asyncio.timeout(_REFUSAL_S):
            async for chunk in chunks:
                body += chunk
                if len(body) > _REFUSAL_LIMIT:
                    break
    except TimeoutError as error:
        raise TimedOut(f"{request.method} {request.path}: the refusal does not end") from error
    return body
