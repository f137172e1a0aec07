"""The listening side: TLS, connections, an orderly end."""

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Sequence
from email.utils import format_datetime
from pathlib import Path

from kcm_cli.component.clock import Clock, RealClock
from kcm_cli.component.connection_limits import ConnectionLimits, Limits
from kcm_cli.sandbox.apiserver.http.protocol import Handler, HttpConnection
from kcm_cli.sandbox.apiserver.security.certificates import Certificates

_RECEIVED_BYTES = 32 * 1024
LIMITS = Limits(1024, all_head_bytes=24 << 20, sweep_s=5.0)
"""Bodies count among the heads: they are kept until they are whole, and before it is known whose they are."""


def tls_context(certificates: Certificates, client_cas: bytes = b"") -> ssl.SSLContext:
    """Serves with the cluster's certificate; a client may show one that the same CA signed, or one of these (PEM)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=(certificates.ca.certificate + client_cas).decode())
    with tempfile.TemporaryDirectory() as directory:
        pair = Path(directory, "pair.pem")
        pair.touch(mode=0o600)
        pair.write_bytes(certificates.serving.certificate + certificates.serving.key)
        context.load_cert_chain(pair)
    return context


class HttpServer:
    """Serves a handler on bound sockets, within limits. ``start``, then ``stop`` once."""

    def __init__(self, handler: Handler, clock: Clock, limits: Limits = LIMITS) -> None:
        self.handler = handler
        self.limits = ConnectionLimits(limits, RealClock())
        self.open: set[HttpConnection] = set()
        self._clock = clock
        self._servers: list[asyncio.Server] = []
        self._date: tuple[int, str] = (0, "")

    async def start(self, sockets: Sequence[socket.socket], context: ssl.SSLContext | None) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        for one in sockets:
            # What is read at once is kept by each connection's TLS for its lifetime.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
            self._servers.append(
                await loop.create_server(lambda: HttpConnection(self), sock=one, ssl=context, backlog=1024)
            )

    async def stop(self, patience_s: float) -> None:
        """Accept no more; give running requests (watches excepted, which never end) ``patience_s`` to finish."""
        for server in self._servers:
            server.close()
        deadline = self._clock.monotonic() + patience_s
        for connection in list(self.open):
            if not connection.busy:
                connection.close()
        while any(c.busy for c in self.open) and self._clock.monotonic() < deadline:
            await self._clock.sleep(0.02)
        for connection in list(self.open):
            connection.abort()
        self.limits.close()
        await self._clock.sleep(0)

    def date(self) -> str:
        """The Date header of now, made once a second."""
        second = int(self._clock.monotonic())
        if self._date[0] != second:
            self._date = (second, format_datetime(self._clock.now(), usegmt=True))
        return self._date[1]
