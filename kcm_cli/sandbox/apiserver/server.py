"""The API server without a socket: maps requests to responses.

HTTP connections and the in-process transport call ``handle``. It authenticates, resolves the request, passes it to
interceptors and injected faults, impersonates, authorizes, routes, and runs the verb.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.controllers import controllers
from kcm_cli.sandbox.apiserver.controllers.api_services import of_declared
from kcm_cli.sandbox.apiserver.controllers.bootstrap import create_missing
from kcm_cli.sandbox.apiserver.controllers.upkeep import Upkeep
from kcm_cli.sandbox.apiserver.crd.resources import CustomResources
from kcm_cli.sandbox.apiserver.discovery.serve import Discovery, check_route
from kcm_cli.sandbox.apiserver.entrance import (
    Answer,
    Asked,
    Exchange,
    Interceptor,
    Observer,
    current_exchange,
    exchanging,
)
from kcm_cli.sandbox.apiserver.entry import served as served_faults
from kcm_cli.sandbox.apiserver.entry.faults import Faults, OpenWatch
from kcm_cli.sandbox.apiserver.errors import internal
from kcm_cli.sandbox.apiserver.flow_classes import FlowClasses
from kcm_cli.sandbox.apiserver.metrics import ServerMetrics
from kcm_cli.sandbox.apiserver.openapi import OpenApi
from kcm_cli.sandbox.apiserver.openapi.serve import answer as answer_openapi
from kcm_cli.sandbox.apiserver.registry import negotiation
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.catalog import Group, Served
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.media import KUBELET
from kcm_cli.sandbox.apiserver.registry.options import timeout_s
from kcm_cli.sandbox.apiserver.registry.responses import (
    error_response,
    indented,
    text_response,
    with_headers,
    with_warnings,
)
from kcm_cli.sandbox.apiserver.registry.tables import media
from kcm_cli.sandbox.apiserver.registry.verbs import Verbs
from kcm_cli.sandbox.apiserver.routing.requestinfo import resolve, unresolvable
from kcm_cli.sandbox.apiserver.routing.routes import PLAIN_404, UNAVAILABLE, NoSuchGroup, Unavailable, route
from kcm_cli.sandbox.apiserver.security.authenticator import Authenticator
from kcm_cli.sandbox.apiserver.store import Event, NotKept
from kcm_cli.sandbox.apiserver.types import NOBODY, ApiError, RequestInfo, User
from kcm_cli.sandbox.streams import websocket

_log = logging.getLogger(__name__)


class _Work(msgspec.Struct):
    """A request to handle. rest: its path after the subresource. at: the revision that reads show (None: the latest).
    flow: the response headers that name its flow schema and priority level. routed: its resource is known."""

    asked: Asked
    rest: str
    query: Mapping[str, str]
    at: int | None
    flow: Mapping[str, str] | None = None
    routed: bool = False


class _TimedOut(Exception):
    """The time that the client gives to its request is over."""


class AggregatedApi(Protocol):
    """Serves the resources of one API group."""

    group: Group
    resources: tuple[Served, ...]

    async def answer(self, info: RequestInfo, query: Mapping[str, str], accept: str) -> Response:
        """Raises ApiError."""


class ApiServer:
    """See the module. Belongs to one event loop."""

    def __init__(self, core: Core, custom: CustomResources) -> None:
        """custom: the custom resources of ``core``, which follow their definitions."""
        self.core = core
        self.catalog, self.routes, self.components = core.catalog, core.routes, core.components
        self._security = core.security
        self._aggregated: dict[tuple[str, str], AggregatedApi] = {}
        self._verbs = Verbs(core)
        for controller in controllers(custom):
            controller(core)
        self._flows = FlowClasses(core.store)
        self._metrics = ServerMetrics(core.store)
        self.interceptors: list[Interceptor] = []
        """Each request passes them in order, and then the injected faults."""
        self._observers: list[Observer] = []
        self.faults = Faults(self, core.clock)
        self._verbs.watching.opened = self.faults.opened
        custom.replaced = self._verbs.watching.end_later
        self._discovery = Discovery(self.catalog, core.clock, core.settings.flags(), core.settings.version)
        self._openapi = OpenApi(self.catalog, core.schemas.builtin, custom)

    @property
    def authenticator(self) -> Authenticator:
        """Maps credentials to users."""
        return self._security.authenticator

    def aggregate(self, api: AggregatedApi) -> None:
        """Serve a group whose objects are not in the store, as an aggregated API server would."""
        self.catalog.add_aggregated(api.group, api.resources)
        self._aggregated.update(((api.group.group, version), api) for version in api.group.versions)

    def observe(self, observer: Observer) -> None:
        """Call a function with each request that is answered from now on; a watch, when it begins."""
        if not self._observers:
            self.core.store.observers.append(_note_write)
        self._observers.append(observer)

    def open_watches(self) -> Iterable[OpenWatch]:
        """All open watches."""
        return self._verbs.watching.running

    def revision(self) -> int:
        """The revision of the last write."""
        return self.core.store.revision

    async def handle(self, request: Request, peer_cert: bytes | None = None) -> Answer:
        """Handle a request whose user is in its credentials. ``peer_cert``: the client certificate in DER."""
        warnings: list[str] = []
        audit_id = request.headers.get("audit-id") or str(uuid.uuid4())
        if self._observers:
            request = replace(request, headers={**request.headers, "audit-id": audit_id})
        try:
            if problem := unresolvable(request.path):
                query = f"?{request.sent_query}" if request.sent_query else ""
                where = quote(request.path + query)
                text = f"Internal Server Error: {where}: failed to create RequestInfo: {problem}{query}\n"
                return text_response(500, text)
            user = self._security.authenticator.authenticate(request.headers, peer_cert, warnings)
            headers = self._security.authenticator.passed_on(request.headers)
            if "sec-websocket-protocol" in headers:
                headers = _without_token(headers)
            if headers is not request.headers:
                request = replace(request, headers=headers)
            answer = await self.handle_as(user, request, warnings)
        except ApiError as error:
            answer = _refused(request, error, warnings)
            if self._observers:
                self._show(self._exchange(NOBODY, request), answer)
        return with_headers(answer, {"audit-id": audit_id})

    async def handle_as(self, user: User, request: Request, warnings: list[str] | None = None) -> Answer:
        """Handle a request of an authenticated user."""
        if not self._observers:
            return await self._passed(user, request, warnings)
        exchange = self._exchange(user, request)
        try:
            with exchanging(exchange):
                exchange.answer = await self._passed(user, request, warnings)
            return exchange.answer
        finally:
            if exchange.answer is not None:  # also if the connection ends before the client gets it
                self._show(exchange, exchange.answer)

    def _exchange(self, user: User, request: Request) -> Exchange:
        info, _ = resolve(request.method, request.path, _first_values(request.query))
        clock = self.core.clock
        return Exchange(asked=Asked(user, request, info), received=clock.now(), at=clock.monotonic(), user=user)

    def _show(self, exchange: Exchange, answer: Answer) -> None:
        exchange.answer = answer
        for observer in self._observers:
            observer(exchange)

    async def _passed(self, user: User, request: Request, warnings: list[str] | None) -> Answer:
        """The answer after interceptors and faults."""
        notes: list[str] = [] if warnings is None else warnings
        query = _first_values(request.query)
        info, rest = resolve(request.method, request.path, query)
        asked = Asked(user, request, info)
        if not (self.interceptors or self.faults.any) or served_faults.serves(request.path):
            return await self._handled(_Work(asked, rest, query, None), notes)
        try:
            return await self._intercepted([*self.interceptors, self.faults.intercept], asked, rest, notes, None)
        except ApiError as error:
            return _refused(request, error, notes)

    async def _intercepted(
        self, left: Sequence[Interceptor], asked: Asked, rest: str, notes: list[str], at: int | None
    ) -> Answer:
        if not left:
            return await self._handled(_Work(asked, rest, _first_values(asked.request.query), at), notes)

        async def proceed(request: Request, shown: int | None) -> Answer:
            return await self._intercepted(left[1:], replace(asked, request=request), rest, notes, shown)

        return await left[0](asked, proceed)

    async def _handled(self, work: _Work, notes: list[str]) -> Answer:
        clock = self.core.clock
        start = clock.monotonic()
        request, info, query = work.asked.request, work.asked.info, work.query
        try:
            answer = await self._in_time(work, notes)
        except _TimedOut:
            work.flow, notes, answer = None, [], _TIMED_OUT
        except ApiError as error:
            answer = _refused(request, error, notes)
        except NoSuchGroup:
            answer = text_response(404, PLAIN_404)
        except Unavailable:
            answer = text_response(503, UNAVAILABLE)
        except NotKept as error:
            _log.error("Not written", extra={"fields": {"path": request.path, "err": str(error)}})
            answer = error_response(internal(str(error)))
        except Exception:  # noqa: BLE001 - the one boundary: a bug fails its request only, and is logged
            _log.exception("request failed", extra={"fields": {"method": request.method, "path": request.path}})
            answer = error_response(internal("unexpected error, see the log of the server"))
        if work.routed or not info.is_resource:  # clients must not be able to add series
            self._metrics.observe(request, info, answer, clock.monotonic() - start)
        if isinstance(answer, Response) and _indents(request, info, query):
            answer = indented(answer)
        if work.flow:
            answer = with_headers(answer, work.flow)
        if (exchange := current_exchange()) is not None:
            exchange.answer = answer
        return with_warnings(answer, notes) if notes else answer

    async def _in_time(self, work: _Work, warnings: list[str]) -> Answer:
        """The answer, unless it takes longer than the client says (``timeout``). Raises ApiError, _TimedOut."""
        info = work.asked.info
        limit_s = None
        if "timeout" in work.query and info.verb != "watch" and info.subresource not in KUBELET:
            limit_s = timeout_s(work.query["timeout"])
        if limit_s is None:
            return await self._answer(work, warnings)
        try:
            async with asyncio.timeout(limit_s) as limit:
                return await self._answer(work, warnings)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _TimedOut from None

    async def _answer(self, work: _Work, warnings: list[str]) -> Answer:
        asked, query = work.asked, work.query
        request, info, user = asked.request, asked.info, asked.user
        user = self._security.impersonator.impersonate(user, request.headers, info)
        work.flow = self._flows.headers(user, info)
        if (exchange := current_exchange()) is None:
            self._security.authorizer.require(user, info)
        else:
            exchange.user, exchange.allowed = user, False
            exchange.reason = self._security.authorizer.require(user, info).reason
            exchange.allowed = True
        if not info.is_resource:
            if "//" in request.path:
                raise NoSuchGroup
            return await self._plain(request, info)
        served = route(self.catalog, info, request.method, work.rest, request.path, warnings)
        work.routed = True
        if served.warning and not served.info.custom:  # that of a custom resource is there
            warnings.append(served.warning)
        aggregated = self._aggregated.get((info.group, info.version))
        if aggregated is not None:
            return await aggregated.answer(info, query, request.headers.get("accept", ""))
        hub = served if not served.converts else self._hub(served)
        form = media(served, request, query, self.core, verb=info.verb, subresource=info.subresource)
        reads = info.verb in _TYPED_BODY and info.subresource not in KUBELET
        if reads or (request.body and info.verb in _DELETIONS):
            request = negotiation.readable(request, custom=served.info.custom)
        call = Call(request, info, served, hub, user, query, form, asked, work.rest, work.at, warnings)
        return await self._verbs.run(call)

    def _hub(self, served: Served) -> Served:
        found = self.catalog.by_gvr(served.storage)
        return served if found is None else found

    async def _plain(self, request: Request, info: RequestInfo) -> Response:
        if served_faults.serves(info.path):
            return served_faults.answer(self.faults, request)
        if found := self._metrics.answer(request):
            return found
        self._metrics.observe_checks(request)
        if info.path.startswith("/openapi/"):
            if found := await answer_openapi(self._openapi, request):
                return found
            if info.path.startswith("/openapi/v3/"):
                return Response(404, {}, b"")
        metadata = self._security.openid.answer(info.path)
        if metadata is None:
            return self._discovery.answer(request)
        check_route(request, metadata.headers["content-type"])
        return metadata

    async def bootstrap(self, documents: Sequence[Doc]) -> None:
        """Create the objects that are missing, and restore them from then on. Watches can start from the revision after
        that."""
        documents = [*documents, *of_declared(self.core.kinds)]
        await create_missing(self, documents)
        await self.core.clock.sleep(0)  # the server writes to some of them in the next turn
        self.core.store.compact(self.core.store.revision)
        Upkeep(self, documents)


def _note_write(gvr: GVR, event: Event) -> None:
    exchange = current_exchange()
    if exchange is not None and exchange.answer is None:
        exchange.writes.append((gvr, event))


_TIMED_OUT = Response(
    504,
    {"content-type": "text/plain; charset=utf-8"},
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n',
)
"""As net/http's filter writes it, in the same form for each client."""
_TYPED_BODY, _DELETIONS = frozenset(["create", "update"]), frozenset(["delete", "deletecollection"])


def _without_token(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers without the token of the WebSocket subprotocols, once it has been authenticated."""
    try:
        found = websocket.bearer(headers) if not headers.get("authorization") else None
    except ValueError:  # the client has a certificate, and its token has not been read
        return headers
    return {**headers, "sec-websocket-protocol": found[1]} if found else headers


def _indents(request: Request, info: RequestInfo, query: Mapping[str, str]) -> bool:
    """Whether to indent the response: one of resources or discovery, requested so or by a browser."""
    objects = info.path.startswith("/api") and info.subresource not in KUBELET
    return objects and negotiation.wants_indented(request.headers, query.get("pretty", ""))


def _refused(request: Request, error: ApiError, warnings: list[str]) -> Answer:
    response = error_response(error)
    form = negotiation.for_status(request.headers.get("accept", ""))
    if form is not None:
        response = negotiation.shaped(response, form)
    if form is None or negotiation.wants_indented(request.headers, _first_values(request.query).get("pretty", "")):
        response = indented(response)
    return with_warnings(response, warnings) if warnings else response


def _first_values(query: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {key: value for key, value in reversed(query)} if query else {}
