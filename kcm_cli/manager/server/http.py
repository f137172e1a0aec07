"""uvicorn, embedded: it serves connections that are accepted here.

Accepting them ourselves allows what uvicorn cannot: answering plain HTTP on a TLS port with a readable 400, and
handing the client's certificate to the application. uvicorn's signal handlers and ``sys.exit`` are out of play
(the server runs on a thread and opens no sockets).
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kcm_cli.manager.server.authentication import parse_peer
from kcm_cli.manager.server.guard import PEER

log = logging.getLogger(__name__)

_FIRST_BYTE_S = 32.0
_HANDSHAKE_S = 10.0
_IDLE_S = 90
_DRAIN_S = 1
_CLIENT_HELLO = b"\x16"
_NOT_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_HTTP_STARTS = (b"GET", b"HEA", b"POS", b"PUT", b"OPT", b"DEL", b"PAT", b"CON", b"TRA")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A bound socket, what it serves, and the TLS context (None: plain HTTP)."""

    sock: socket.socket
    app: ASGIApp
    tls: ssl.SSLContext | None


class _Protocol(HttpToolsProtocol):
    """Keeps the certificate of the connection in the state of each of its requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        connection = transport.get_extra_info("ssl_object")
        if connection is None:
            return
        der = connection.getpeercert(binary_form=True)
        if not der:
            return
        chain = getattr(connection, "get_unverified_chain", lambda: ())() or ()  # from Python 3.13 on
        try:
            self.app_state[PEER] = parse_peer(der, tuple(chain)[1:])
        except ValueError as error:
            log.info("Unusable client certificate", extra={"fields": {"err": str(error)}})


class _Server(uvicorn.Server):
    """uvicorn without sockets and signals of its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = []
        self.started = True


class HttpServer:
    """Serves endpoints until stopped."""

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self._endpoints = endpoints
        self._servers = tuple(_Server(_config(endpoint.app)) for endpoint in endpoints)
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting: list[asyncio.Task[None]] = []

    async def serve(self) -> None:
        """Serve until ``stop`` or cancelled; after ``stop`` open requests have a second to end."""
        loop = asyncio.get_running_loop()
        for endpoint, server in zip(self._endpoints, self._servers, strict=True):
            server.config.load()
            self._accepting.append(loop.create_task(self._accept(endpoint, server), name="accept"))
        try:
            await asyncio.gather(*(server.serve() for server in self._servers))
        finally:
            self.stop()
            for task in self._opening:
                task.cancel()

    def stop(self) -> None:
        """Take no more connections, and let ``serve`` end. Call it on the server's loop."""
        for server in self._servers:
            server.should_exit = True
        for task in self._accepting:
            task.cancel()
        for endpoint in self._endpoints:
            endpoint.sock.close()

    async def _accept(self, endpoint: Endpoint, server: _Server) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(endpoint.sock)
            except OSError as error:
                log.error("Could not accept a connection", extra={"fields": {"err": str(error)}})
                await asyncio.sleep(0.1)
                continue
            task = loop.create_task(self._open(sock, endpoint, server), name="open connection")
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, sock: socket.socket, endpoint: Endpoint, server: _Server) -> None:
        """Hand an accepted socket to uvicorn, once it is clear what it speaks."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if endpoint.tls is not None and not await _speaks_tls(sock):
                sock.close()
                return
            await self._connect(sock, endpoint, server)
        except (OSError, TimeoutError) as error:  # ssl.SSLError is one
            log.debug("TLS handshake error", extra={"fields": {"err": str(error)}})
            sock.close()
        except asyncio.CancelledError:
            sock.close()
            raise

    async def _connect(self, sock: socket.socket, endpoint: Endpoint, server: _Server) -> None:
        loop = asyncio.get_running_loop()

        def protocol() -> _Protocol:
            return _Protocol(config=server.config, server_state=server.server_state, app_state={})

        if endpoint.tls is None:
            await loop.connect_accepted_socket(protocol, sock)
            return
        await loop.connect_accepted_socket(protocol, sock, ssl=endpoint.tls, ssl_handshake_timeout=_HANDSHAKE_S)


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
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_DRAIN_S,
    )


async def _speaks_tls(sock: socket.socket) -> bool:
    """Whether the client begins a TLS handshake. Plain HTTP is told what is wrong; the socket is then of no use."""
    start = await _peek(sock)
    if start[:1] == _CLIENT_HELLO:
        return True
    if start.startswith(_HTTP_STARTS):
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_HANDSHAKE_S):
            await loop.sock_recv(sock, 65536)
            await loop.sock_sendall(sock, _NOT_TLS)
            sock.shutdown(socket.SHUT_WR)
    return False


async def _peek(sock: socket.socket) -> bytes:
    """The first bytes that came, left in place for whoever reads next."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sock, _set, ready)
    try:
        async with asyncio.timeout(_FIRST_BYTE_S):
            await ready
    finally:
        loop.remove_reader(sock)
    return sock.recv(3, socket.MSG_PEEK)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
