"""Idle connections that are kept for the next request.

The connection used last is used next, so that under little load the others expire and are closed.

Guarantees: after its TLS context is replaced, a connection only finishes its current request. An idle connection is
closed after KEEPALIVE_S to twice that.
"""

import asyncio
import ssl

from kcm_cli.component.clock import Clock
from kcm_cli.rest.connection import Connection

KEEPALIVE_S = 60.0
"""API servers close idle connections after 90 s."""


class Pool:
    """``take`` a kept connection or ``adopt`` a new one, then ``give_back`` it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._contexts: dict[Connection, ssl.SSLContext | None] = {}
        self._idle: list[tuple[Connection, float]] = []
        self._timer: asyncio.TimerHandle | None = None

    def take(self, context: ssl.SSLContext | None) -> Connection | None:
        """An idle connection with this TLS context, if there is one."""
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.free and self._contexts[connection] is context:
                return connection
            self._drop(connection)
        return None

    def adopt(self, connection: Connection, context: ssl.SSLContext | None) -> Connection:
        """Add a new connection, which is in use."""
        self._contexts[connection] = context
        return connection

    def give_back(self, connection: Connection) -> None:
        """Return a connection: it is kept if it can be reused, else closed."""
        if not connection.free or connection not in self._contexts:
            self._drop(connection)
            return
        self._idle.append((connection, self._clock.monotonic()))
        if self._timer is None:
            self._timer = self._clock.call_later(KEEPALIVE_S, self._sweep)

    def close(self) -> None:
        """Close all connections; requests in flight fail."""
        if self._timer is not None:
            self._timer.cancel()
        self._idle.clear()
        for connection in list(self._contexts):
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self._contexts.pop(connection, None)
        connection.close()

    def _sweep(self) -> None:
        before = self._clock.monotonic() - KEEPALIVE_S
        old = [connection for connection, since in self._idle if since <= before or not connection.free]
        self._idle = [(connection, since) for connection, since in self._idle if connection not in old]
        for connection in old:
            self._drop(connection)
        self._timer = self._clock.call_later(KEEPALIVE_S, self._sweep) if self._idle else None
