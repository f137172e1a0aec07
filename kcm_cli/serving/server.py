"""An HTTP server: the connections that bound sockets accept, within limits, over TLS or plain.

upstream: net/http/server.go#Server
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from email.utils import format_datetime
from functools import partial

from OpenSSL import SSL

from kcm_cli.component.clock import Clock
from kcm_cli.serving.connection import Handler, HttpConnection
from kcm_cli.serving.connection_limits import ConnectionLimits, Slot
from kcm_cli.serving.secure_listener import Listener, SecureListener
from kcm_cli.serving.turns import REQUESTS, Turns

_RECEIVED_BYTES = 32 * 1024
"""What the kernel keeps of a connection that is not read."""
_POLL_S = 0.02


class HttpServer:
    """``start``, then ``stop`` once.

    handler: makes the handler of a connection's requests from the certificates of its client (DER, its own first).
    clock: for the Date header and the end.
    """

    def __init__(self, handler: Callable[[tuple[bytes, ...]], Handler], limits: ConnectionLimits, clock: Clock) -> None:
        self.handler = handler
        self.limits = limits
        self.turns = Turns(most=REQUESTS)
        self.open: set[HttpConnection] = set()
        self._clock = clock
        self._listeners: list[Listener] = []
        self._date: tuple[int, str] = (0, "")

    def start(self, sockets: Sequence[socket.socket], context: Callable[[], SSL.Context] | None) -> None:
        """Accept connections. context: returns the TLS context of a new connection; None: they are plain HTTP."""
        make: Callable[[Slot], asyncio.BaseProtocol] = partial(HttpConnection, self)
        if context is not None:
            make = SecureListener(self.limits, context, partial(HttpConnection, self)).connection
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
            self._listeners.append(Listener(one, self.limits, make))

    async def stop(self, patience_s: float) -> None:
        """Stop accepting connections, wait up to ``patience_s`` for requests except streams, and close all."""
        for listener in self._listeners:
            listener.close()
        deadline = self._clock.monotonic() + patience_s
        for connection in list(self.open):
            connection.shutdown()
        while any(connection.busy for connection in self.open) and self._clock.monotonic() < deadline:
            await self._clock.sleep(_POLL_S)
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
