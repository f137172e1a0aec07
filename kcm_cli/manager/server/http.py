"""The server of port 10257: uvicorn runs an ASGI application on connections that are accepted, limited and decrypted by
``kcm_cli.serving``.

uvicorn's own connections lack client certificates of any issuer and limits for clients, and its sockets the order in
which new clients are served. uvicorn runs the application, ends the server, and lets open requests finish.

upstream: staging/src/k8s.io/apiserver/pkg/server/secure_serving.go
"""

import logging
import re
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec
import uvicorn
from OpenSSL import SSL
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Scope

from kcm_cli.component.clock import Clock
from kcm_cli.manager.server.authentication import Authenticator, parse_peer
from kcm_cli.manager.server.authorization import Authorizer
from kcm_cli.manager.server.guard import PEER, Guard
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.mux import Mux
from kcm_cli.rest.transport import Response
from kcm_cli.serving.connection import Handler, HttpConnection, Received
from kcm_cli.serving.connection_limits import ConnectionLimits, Limits, Slot
from kcm_cli.serving.fair_queue import REQUESTS, FairQueue
from kcm_cli.serving.secure_listener import Listener, SecureListener

log = logging.getLogger(__name__)

CONNECTIONS = 128
"""At once. A scraper or two, probes, people: a dozen would do."""
LIMITS = Limits(CONNECTIONS, all_body_bytes=4 << 20)  # the only body that is read is a number
LONGEST_TARGET, MOST_PARAMETERS = 16 << 10, 1000
"""Of a request, in bytes. Splitting the parameters of a megabyte would take the event loop 1.5 s."""
_DRAIN_S = 1
_authority = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
"""At the beginning of a target that is meant for a proxy."""


def application(
    mux: Mux, authenticator: Authenticator, authorizer: Authorizer, clock: Clock, metrics: AuthMetrics
) -> ASGIApp:
    """The pages behind authentication and authorization."""
    guard = Middleware(Guard, authenticator=authenticator, authorizer=authorizer, clock=clock, metrics=metrics)
    app = Starlette(middleware=[guard])
    app.router.default = mux  # not below a route, which would answer targets that are no path, such as *
    return app


class Endpoint(msgspec.Struct, frozen=True):
    """A bound socket, its application, and a function that returns the TLS context for a connection to a local address
    (None: plain HTTP)."""

    sock: socket.socket
    app: ASGIApp
    tls: Callable[[str], SSL.Context] | None


class HttpServer:
    """Serves an endpoint until stopped."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._endpoint = endpoint
        self._server = uvicorn.Server(_config(endpoint.app))
        self._listener: Listener | None = None
        self.open: set[HttpConnection] = self._server.server_state.connections  # type: ignore[assignment]
        self.limits = ConnectionLimits(LIMITS, clock)
        self.queue = FairQueue(most=REQUESTS)

    async def serve(self) -> None:
        """Serve until ``stop`` or cancelled. After ``stop``, open requests have a second to finish."""
        try:
            self._server.config.load()
            tls = self._endpoint.tls
            make = self._connection if tls is None else SecureListener(self.limits, tls, self._connection).connection
            self._listener = Listener(self._endpoint.sock, self.limits, make)
            await self._server.serve(sockets=[])
        finally:
            self.stop()
            self.limits.close()

    def stop(self) -> None:
        """Stop accepting connections, and let ``serve`` end. Call it on the server's loop."""
        self._server.should_exit = True
        if self._listener is not None:
            self._listener.close()
        self._endpoint.sock.close()

    def handler(self, certificates: tuple[bytes, ...]) -> Handler:
        """The handler of a connection's requests: the application, which gets the client's certificate as state."""
        state: dict[str, Any] = {}
        if certificates:
            try:
                state[PEER] = parse_peer(certificates[0], certificates[1:])
            except ValueError as error:
                log.info("Unusable client certificate", extra={"fields": {"err": str(error)}})
        app = self._server.config.loaded_app

        async def handler(received: Received) -> Response:
            target = received.target
            if len(target) > LONGEST_TARGET or target.count(b"&") > MOST_PARAMETERS:
                return _too_long()
            return await _called(app, _scope(received, state), received.body)

        return handler

    def date(self) -> str:
        """The current Date header, which uvicorn formats once a second."""
        return dict(self._server.server_state.default_headers)[b"date"].decode()

    def _connection(self, slot: Slot) -> HttpConnection:
        return HttpConnection(self, slot)


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        http=HttpConnection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )


def _scope(received: Received, state: dict[str, Any]) -> Scope:
    target = received.target.decode("latin-1")
    path, _, query = _authority.sub("", target, count=1).partition("?")
    if received.method == "CONNECT":
        path = ""  # the target is a host
    elif path != "*" and not path.startswith("/"):
        path = f"/{path}"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": received.version,
        "method": received.method,
        "scheme": "https",
        "path": unquote(path),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in received.headers],
        "client": None,
        "server": None,
        "state": dict(state),
    }


def _too_long() -> Response:
    return Response(414, {"content-type": "text/plain; charset=utf-8"}, b"414 Request URI Too Long")


async def _called(app: ASGIApp, scope: Scope, body: bytes) -> Response:
    """The application's whole response."""
    received: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return received.pop() if len(received) > 1 else received[0]

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *parts = sent
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    headers.pop("content-length", None)  # the connection sets it
    return Response(start["status"], headers, b"".join(part.get("body", b"") for part in parts))
