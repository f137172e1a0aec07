"""uvicorn, embedded: it handles HTTP/1.1 on connections that are accepted, decrypted and limited here.

This adds what uvicorn lacks: client certificates of any issuer, a readable 400 for plain HTTP on a TLS port, limits for
clients (``component.connection_limits``), and answers worded as Go's. uvicorn's signal handlers and ``sys.exit`` are
not used, since the server runs on a thread and opens no sockets.

upstream: net/http/server.go, staging/src/k8s.io/apiserver/pkg/server/secure_serving.go
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from functools import partial

import httptools
import msgspec
import uvicorn
from OpenSSL import SSL
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kcm_cli.component.clock import Clock
from kcm_cli.component.connection_limits import IDLE_S, MAX_UNREAD_BODY_BYTES, ConnectionLimits, Limits, Slot
from kcm_cli.component.secure_listener import Listener, SecureListener
from kcm_cli.component.tls_transport import PEER_CERTIFICATES
from kcm_cli.manager.server.authentication import parse_peer
from kcm_cli.manager.server.guard import PEER

log = logging.getLogger(__name__)

CONNECTIONS = 128
"""At once. A scraper or two, probes, people: a dozen would do."""
MAX_BODY_BYTES = 3 * 1024 * 1024
_DRAIN_S = 1
_REFUSAL = "HTTP/1.1 {0}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{0}"
_TOO_LARGE = "431 Request Header Fields Too Large"
_BODY_TOO_LARGE = "413 Request Entity Too Large"
_BAD = "400 Bad Request"


class Endpoint(msgspec.Struct, frozen=True):
    """A bound socket, its application, and a function that returns the TLS context of a new connection (None: plain
    HTTP)."""

    sock: socket.socket
    app: ASGIApp
    tls: Callable[[], SSL.Context] | None


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits. The state of each request has the connection's certificate."""

    def __init__(self, server: "_Server", limits: ConnectionLimits, slot: Slot) -> None:
        super().__init__(config=server.config, server_state=server.server_state, app_state={})
        self._limits = limits
        self._slot = slot
        self._in_head = True
        self._head_begun = False
        self._in_body = False
        self._rest = bytearray()
        self._tail = b""
        self._unread = self._read = 0
        self._refused = False
        self._why = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._slot.on_refusal(self._hang_up, lambda: self._refuse(_TOO_LARGE))
        self._slot.idle(self._limits.settings.head_s)
        certificates = transport.get_extra_info(PEER_CERTIFICATES) or ()
        if certificates:
            try:
                self.app_state[PEER] = parse_peer(certificates[0], certificates[1:])
            except ValueError as error:
                log.info("Unusable client certificate", extra={"fields": {"err": str(error)}})

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.headers, self._rest = [], bytearray()
        if self.cycle is not None and self.cycle.response_complete:
            self.cycle = None  # type: ignore[assignment]  # no cycle of references is left behind
        self._limits.leave(self._slot)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._in_head and not self._slot.received(len(data)):
            self._slot.refuse()
            return
        self._feed(data)
        if self._why and not self._refused:
            self._refuse_now(self._why)

    def _feed(self, data: bytes) -> None:
        """Pass data to the parser: the first part of a request's head at once, the rest when the head is complete.

        The parser would otherwise copy an incomplete header with each part that arrives.
        """
        if not self._in_head or not self._head_begun:
            self._head_begun, self._tail = self._in_head, data[-3:]
            super().data_received(data)
            return
        self._rest += data
        seen = self._tail + data
        self._tail = seen[-3:]
        if b"\n\r\n" in seen or b"\n\n" in seen:  # a lone newline ends a line, too
            rest, self._rest = bytes(self._rest), bytearray()
            super().data_received(rest)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._slot.stalled = True

    def resume_writing(self) -> None:
        super().resume_writing()
        self._slot.stalled = False

    # httptools' callbacks

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._slot.header():
            self._why = _TOO_LARGE
            raise ValueError(self._why)  # ends the parsing
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head_begun, self._in_body, self._read, self._unread = False, False, True, 0, 0
        self._slot.complete()
        if self.parser.get_http_version() == "1.1" and not any(name == b"host" for name, _ in self.headers):
            self._why = f"{_BAD}: missing required Host header"
            raise ValueError(self._why)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > MAX_UNREAD_BODY_BYTES:
                self._hang_up()
            return
        self._read += len(body)
        if self._read > MAX_BODY_BYTES:
            self._why = _BODY_TOO_LARGE
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._in_body = True, False
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._slot.idle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle is not None and not self.pipeline:
            self._slot.idle(self._limits.settings.head_s if self._in_body else None)

    # refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse_now(self._why or _BAD)

    def _refuse_now(self, status: str) -> None:
        if self._refused:
            return
        self._why = status
        self._slot.refuse()

    def _refuse(self, status: str) -> None:
        """Send an error and read no more. The limits close the connection after the client could read it."""
        self._refused = True
        self.headers, self.url, self._rest = [], b"", bytearray()
        self.parser = httptools.HttpRequestParser(self)
        begun = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not begun and not self.transport.is_closing():
            self.transport.write(_REFUSAL.format(self._why or status).encode())

    def _hang_up(self) -> None:
        self._refused = True
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()


class _Server(uvicorn.Server):
    """A uvicorn server without its own sockets and signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = []
        self.started = True


class HttpServer:
    """Serves endpoints until stopped."""

    def __init__(self, endpoints: tuple[Endpoint, ...], clock: Clock, limits: Limits | None = None) -> None:
        self._endpoints = endpoints
        self._servers = tuple(_Server(_config(endpoint.app)) for endpoint in endpoints)
        self._limits = ConnectionLimits(limits or Limits(CONNECTIONS), clock)
        self._listeners: list[Listener] = []

    async def serve(self) -> None:
        """Serve until ``stop`` or cancelled. After ``stop``, open requests have a second to finish."""
        try:
            for endpoint, server in zip(self._endpoints, self._servers, strict=True):
                server.config.load()
                make = self._factory(endpoint, server)
                self._listeners.append(Listener(endpoint.sock, self._limits, make))
            await asyncio.gather(*(server.serve() for server in self._servers))
        finally:
            self.stop()
            self._limits.close()

    def stop(self) -> None:
        """Stop accepting connections, and let ``serve`` end. Call it on the server's loop."""
        for server in self._servers:
            server.should_exit = True
        for listener in self._listeners:
            listener.close()
        for endpoint in self._endpoints:
            endpoint.sock.close()

    def _factory(self, endpoint: Endpoint, server: _Server) -> Callable[[Slot], asyncio.BaseProtocol]:
        protocol = partial(_Protocol, server, self._limits)
        return protocol if endpoint.tls is None else SecureListener(self._limits, endpoint.tls, protocol).connection


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        http=_Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(IDLE_S),
        timeout_graceful_shutdown=_DRAIN_S,
    )
