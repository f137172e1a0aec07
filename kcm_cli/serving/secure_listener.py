"""Accepts a server's connections: a few at a time, limited, over TLS.

The loop accepts ACCEPTS connections in a turn, so that established connections do not wait for all new ones.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

from OpenSSL import SSL

from kcm_cli.serving.connection_limits import ConnectionLimits, Slot
from kcm_cli.serving.fair_queue import FairQueue
from kcm_cli.serving.listening import BACKLOG
from kcm_cli.serving.tls_transport import TlsProtocol

log = logging.getLogger(__name__)

ACCEPTS = 16
REST_S = 1.0
"""Nothing is accepted for so long when the process has no descriptors left."""
_BUFFER_BYTES = 16 * 1024


class Listener:
    """Accepts connections on a bound socket until it is closed: ACCEPTS in a turn of the loop.

    asyncio's own server takes as many as its backlog in a turn; libuv's takes all that wait, or from 1.49 on a single
    one, so that behind a flood a client would wait for hundreds of turns.

    make: the protocol of a new connection, which calls ``limits.leave`` when its connection is lost.
    """

    def __init__(
        self, sock: socket.socket, limits: ConnectionLimits, make: Callable[[Slot], asyncio.BaseProtocol]
    ) -> None:
        self._sock = sock
        self._limits = limits
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        sock.listen(BACKLOG)
        self._loop.add_reader(sock, self._accept)

    def close(self) -> None:
        """Accept no more, and close the socket. May be called again."""
        if self._pause is not None:
            self._pause.cancel()
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._sock.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            try:
                sock, peer = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._rest(error)
                return
            self._admit(sock, str((peer or ("",))[0]))

    def _rest(self, error: OSError) -> None:
        """Pause when the process is out of descriptors or memory: waiting connections would wake the loop for ever."""
        log.error("Connections cannot be accepted for now", extra={"fields": {"err": str(error)}})
        self._loop.remove_reader(self._sock)
        self._pause = self._loop.call_later(REST_S, self._loop.add_reader, self._sock, self._accept)

    def _admit(self, sock: socket.socket, address: str) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # asyncio sets this for sockets whose protocol is named only; without it a body waits for the ACK of its head.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opening = _Opening()
        slot = self._limits.admit(address, opening.close)
        task = self._loop.create_task(self._open(sock, slot, opening))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, sock: socket.socket, slot: Slot, opening: "_Opening") -> None:
        opened = False
        try:
            transport, _ = await self._loop.connect_accepted_socket(lambda: self._make(slot), sock)
            opened = True
        except OSError as error:
            log.debug("Connection failed", extra={"fields": {"err": str(error)}})
        finally:
            if not opened:
                sock.close()
                self._limits.leave(slot)
        if opened and opening.closed:
            transport.abort()


class _Opening:
    """A connection before it has a transport: uvloop's must not be closed by its protocol's ``connection_made``."""

    closed = False

    def close(self) -> None:
        """Close the transport as soon as there is one."""
        self.closed = True


class SecureListener:
    """The shared state of a listener's connections. Pass ``connection`` to ``Listener``.

    context: returns the TLS context for a connection to a local address. make: makes the protocol once the handshake is
    done.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        context: Callable[[str], SSL.Context],
        make: Callable[[Slot], asyncio.Protocol],
    ) -> None:
        self.limits = limits
        self.context = context
        self.make = make
        self.buffer = bytearray(_BUFFER_BYTES)
        self.queues = FairQueue(), FairQueue()

    def connection(self, slot: Slot) -> asyncio.BaseProtocol:
        """The protocol of a new connection."""
        return _Connection(self, slot)


class _Connection(TlsProtocol):
    """A connection that holds a slot from its start to its end."""

    def __init__(self, listener: SecureListener, slot: Slot) -> None:
        super().__init__(listener.context, listener.buffer, listener.queues, self._open, _failed)
        self._limits = listener.limits
        self._protocol = listener.make
        self._slot = slot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        abort = cast(asyncio.Transport, transport).abort
        self._slot.on_refusal(abort, abort)

    def received(self, data: bytes) -> None:
        if not self._slot.refused:  # else it is read only to answer why
            super().received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._limits.leave(self._slot)

    def _open(self) -> asyncio.Protocol:
        return self._protocol(self._slot)


def _failed(why: str) -> None:
    log.debug("TLS handshake error", extra={"fields": {"err": why}})
