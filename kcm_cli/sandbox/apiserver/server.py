"""The API server without a socket: one request in, one answer out.

``handle`` is what HTTP connections and the in-process transport call. It composes the parts: who asks, what is
meant, may they, and the verb that does it.
"""

import random
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

from kcm_cli.component.clock import Clock
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.discovery.serve import Discovery
from kcm_cli.sandbox.apiserver.registry import refusals
from kcm_cli.sandbox.apiserver.registry.answers import error_response, text_response, with_warnings
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.deleting import Deleter
from kcm_cli.sandbox.apiserver.registry.media import PlainJson
from kcm_cli.sandbox.apiserver.registry.parts import Authenticator, Parts
from kcm_cli.sandbox.apiserver.registry.reading import Reader
from kcm_cli.sandbox.apiserver.registry.requestinfo import resolve
from kcm_cli.sandbox.apiserver.registry.watching import Watching
from kcm_cli.sandbox.apiserver.registry.writing import Writer
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError, RequestInfo, User


class ApiServer:
    """See the module. Belongs to one event loop."""

    def __init__(
        self, store: Store, clock: Clock, rng: random.Random, parts: Parts, authenticator: Authenticator
    ) -> None:
        self.catalog = Catalog()
        self.core = Core(store, self.catalog, clock, rng, parts)
        self._authenticator = authenticator
        self._reader, self._writer = Reader(self.core), Writer(self.core)
        self._deleter, self._watching = Deleter(self.core), Watching(self.core)
        self._discovery = Discovery(self.catalog)

    async def handle(self, request: Request, peer_cert: bytes | None = None) -> Response | Stream:
        """Answer a request of whoever its credentials (or the client certificate, DER) say."""
        try:
            user = self._authenticator.authenticate(request.headers, peer_cert)
        except ApiError as error:
            return error_response(error)
        return await self.handle_as(user, request)

    async def handle_as(self, user: User, request: Request) -> Response | Stream:
        """Answer a request of a known user."""
        try:
            return await self._answer(user, request)
        except ApiError as error:
            return error_response(error)

    async def _answer(self, user: User, request: Request) -> Response | Stream:
        query = _first_values(request.query)
        info = resolve(request.method, request.path, query)
        if not info.is_resource:
            return self._plain(request, info)
        served = self._route(info)
        call = Call(request, info, served, user, query, PlainJson(served))
        answer = await self._verb(call)
        return with_warnings(answer, call.warnings) if isinstance(answer, Response) else answer

    async def _verb(self, call: Call) -> Response | Stream:
        match call.info.verb:
            case "get":
                return await self._reader.get(call)
            case "list":
                return await self._reader.list(call)
            case "watch":
                return await self._watching.watch(call)
            case "create":
                return await self._writer.create(call)
            case "update":
                return await self._writer.update(call)
            case "patch":
                return await self._writer.patch(call)
            case "delete":
                return await self._deleter.delete(call)
        raise refusals.method_not_allowed()

    def _route(self, info: RequestInfo) -> Served:
        served = self.catalog.find(info.group, info.version, info.plural)
        if served is None:
            raise refusals.no_such_path()
        return served

    def _plain(self, request: Request, info: RequestInfo) -> Response:
        if info.path in ("/healthz", "/livez", "/readyz"):
            return text_response(200, "ok")
        return self._discovery.answer(request)


def _first_values(query: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {key: value for key, value in reversed(query)} if query else {}
