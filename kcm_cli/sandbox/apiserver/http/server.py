"""The server: sockets, TLS, connections, graceful shutdown."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from email.utils import format_datetime
from functools import partial

from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL

from kcm_cli.component import key_pairs
from kcm_cli.component.clock import Clock, RealClock
from kcm_cli.component.connection_limits import ConnectionLimits, Limits, Slot
from kcm_cli.component.secure_listener import Listener, SecureListener
from kcm_cli.component.tls_transport import server_context
from kcm_cli.sandbox.apiserver.http.protocol import Handler, HttpConnection
from kcm_cli.sandbox.apiserver.security.certificates import Certificates

_RECEIVED_BYTES = 32 * 1024
LIMITS = Limits(1024, all_head_bytes=2 << 20, sweep_s=5.0)


def tls_context(certificates: Certificates, client_cas: bytes = b"") -> SSL.Context:
    """A context with the cluster's serving certificate. Client certificates are verified with each request.

    client_cas: PEM of the authorities that are named to clients, in addition to the cluster's. Raises NoCallbacksError.
    """
    context = server_context(key_pairs.certificates(certificates.ca.certificate + client_cas))
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.use_certificate(key_pairs.chain(certificates.serving.certificate)[0])
    key = key_pairs.pair_key(certificates.serving.key)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    context.use_privatekey(key)
    return context


class HttpServer:
    """Serves a handler on bound sockets, within limits. ``start``, then ``stop`` once."""

    def __init__(self, handler: Handler, clock: Clock, limits: Limits = LIMITS) -> None:
        self.handler = handler
        self.limits = ConnectionLimits(limits, RealClock())
        self.open: set[HttpConnection] = set()
        self._clock = clock
        self._listeners: list[Listener] = []
        self._date: tuple[int, str] = (0, "")

    async def start(self, sockets: Sequence[socket.socket], context: SSL.Context | None) -> None:
        """Accept connections. Without a context they use plain HTTP."""
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
            if context is None:
                make: Callable[[Slot], asyncio.BaseProtocol] = partial(HttpConnection, self)
            else:
                make = SecureListener(self.limits, lambda: context, partial(HttpConnection, self)).connection
            self._listeners.append(Listener(one, self.limits, make))

    async def stop(self, patience_s: float) -> None:
        """Stop accepting connections, wait up to ``patience_s`` for requests except streams, and close all."""
        for listener in self._listeners:
            listener.close()
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
        """The current Date header, formatted once a second."""
        second = int(self._clock.monotonic())
        if self._date[0] != second:
            self._date = (second, format_datetime(self._clock.now(), usegmt=True))
        return self._date[1]
