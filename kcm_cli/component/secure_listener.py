"""Connections of a server as they arrive: accepted a few at a time, limited, and decrypted.

Go has a goroutine for each; here the loop turns between ACCEPTS of them, so that those who are served already do not
wait for all who come.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

from OpenSSL import SSL

from kcm_cli.component.connection_limits import ConnectionLimits, Slot
from kcm_cli.component.handshakes import Handshakes
from kcm_cli.component.tls_transport import TlsProtocol

log = logging.getLogger(__name__)

ACCEPTS = 16
BACKLOG = 1024
_BUFFER_BYTES = 64 * 1024


async def listen(sock: socket.socket, factory: Callable[[], asyncio.BaseProtocol]) -> asyncio.Server:
    """Accept connections on a bound socket."""
    server = await asyncio.get_running_loop().create_server(factory, sock=sock, backlog=ACCEPTS)
    sock.listen(BACKLOG)  # asyncio takes one number for how many wait and for how many are accepted in a turn
    return server


def admitted(limits: ConnectionLimits, transport: asyncio.Transport) -> Slot | None:
    """The place of a new connection; without one it is closed."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # asyncio sets this for sockets whose protocol is named only; without it a body waits for the ACK of its head.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    slot = limits.admit(str((transport.get_extra_info("peername") or ("",))[0]), transport.abort)
    if slot is None:
        transport.abort()
    return slot


class SecureListener:
    """What the connections of a listener share. ``connection`` is the factory of ``listen``.

    context: for a new connection. make: the protocol of one whose handshake is done.
    """

    def __init__(
        self, limits: ConnectionLimits, context: Callable[[], SSL.Context], make: Callable[[Slot], asyncio.Protocol]
    ) -> None:
        self.limits = limits
        self.context = context
        self.make = make
        self.buffer = bytearray(_BUFFER_BYTES)
        self.handshakes = Handshakes()

    def connection(self) -> asyncio.BaseProtocol:
        """The protocol of a new connection."""
        return _Connection(self)


class _Connection(TlsProtocol):
    """A connection that has a place from its first moment to its end."""

    def __init__(self, listener: SecureListener) -> None:
        super().__init__(listener.context(), listener.buffer, listener.handshakes, self._open, _failed)
        self._limits = listener.limits
        self._protocol = listener.make
        self._slot: Slot | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._slot = admitted(self._limits, cast(asyncio.Transport, transport))

    def received(self, data: bytes) -> None:
        if self._slot is None or not self._slot.refused:  # else it is read to be able to tell why, and not looked at
            super().received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._slot is not None:
            self._limits.leave(self._slot)

    def _open(self) -> asyncio.Protocol:
        assert self._slot is not None
        return self._protocol(self._slot)


def _failed(why: str) -> None:
    log.debug("TLS handshake error", extra={"fields": {"err": why}})
