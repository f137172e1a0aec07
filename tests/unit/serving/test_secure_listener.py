"""How connections are accepted, on both event loops."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.serving import secure_listener
from kcm_cli.serving.connection_limits import ConnectionLimits, Limits, Slot
from kcm_cli.serving.secure_listener import ACCEPTS, Listener

LOOPS = {"asyncio": False, "uvloop": True}
pytestmark = pytest.mark.parametrize(
    "anyio_backend", [("asyncio", {"use_uvloop": uses}) for uses in LOOPS.values()], ids=LOOPS
)
HUNG_S = 10.0


class Sock(socket.socket):
    """A listening socket whose process has no descriptors left, so many times."""

    failures = 0

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


class Server:
    """Connections that are only counted."""

    def __init__(self, connections: int) -> None:
        self.limits = ConnectionLimits(Limits(connections), LoopClock())
        self.sock = Sock()
        self.sock.bind(("127.0.0.1", 0))
        self.made, self.lost = list[asyncio.Transport](), 0

    def connection(self, slot: Slot) -> asyncio.Protocol:
        return _Connection(self, slot)

    def clients(self, count: int) -> list[socket.socket]:
        return [socket.create_connection(self.sock.getsockname()) for _ in range(count)]


class _Connection(asyncio.Protocol):
    def __init__(self, server: Server, slot: Slot) -> None:
        self._server, self._slot = server, slot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        self._server.made.append(transport)  # type: ignore[arg-type]  # uvloop's are no subclass of it
        self._slot.on_refusal(transport.abort, transport.abort)  # type: ignore[attr-defined]  # as above

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.lost += 1
        self._server.limits.leave(self._slot)


@asynccontextmanager
async def listening(connections: int = 1000) -> AsyncIterator[Server]:
    server = Server(connections)
    listener = Listener(server.sock, server.limits, server.connection)
    try:
        async with asyncio.timeout(HUNG_S):
            yield server
    finally:
        listener.close()
        listener.close()
        server.limits.close()
        while server.lost < len(server.made):
            await asyncio.sleep(0)


async def test_connections_accepted_per_turn_are_limited() -> None:
    async with listening() as server:
        clients, turns = server.clients(300), 0
        while len(server.made) < 300:
            before, turns = len(server.made), turns + 1
            await asyncio.sleep(0)
            assert len(server.made) - before <= 2 * ACCEPTS
        assert turns < 2 * 300 / ACCEPTS  # uvloop's own server takes a turn for each
        for client in clients:
            client.close()


async def test_a_connection_beyond_the_limit_takes_the_place_of_another() -> None:
    async with listening(3) as server:
        first = server.clients(3)
        while len(server.made) < 3:
            await asyncio.sleep(0)
        for slot in list(server.limits._slots):
            slot.complete()  # their requests are handled: none of them waits for its client
        (late,) = server.clients(1)
        while len(server.made) < 4:
            await asyncio.sleep(0)
        assert await asyncio.to_thread(first[0].recv, 1) == b""
        assert len(server.limits) == 3
        for client in (*first, late):
            client.close()


async def test_a_connection_that_loses_its_slot_while_opening_is_closed() -> None:
    async with listening(4) as server:
        clients = server.clients(12)
        while not server.lost:
            await asyncio.sleep(0)
        for client in clients[:8]:  # the oldest make room
            assert await asyncio.to_thread(client.recv, 1) == b""
        assert len(server.limits) == 4
        for client in clients:
            client.close()


async def test_without_descriptors_the_listener_pauses_and_continues(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(secure_listener, "REST_S", 0.01)
    async with listening() as server:
        server.sock.failures = 2
        (client,) = server.clients(1)
        while not server.made:
            await asyncio.sleep(0.005)
        client.close()
    assert [record.getMessage() for record in caplog.records] == ["Connections cannot be accepted for now"] * 2


async def test_a_failed_protocol_frees_its_slot() -> None:
    server, failed = Server(10), asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.set())

    def make(slot: Slot) -> asyncio.Protocol:
        raise ValueError("no certificate")

    listener = Listener(server.sock, server.limits, make)
    (client,) = server.clients(1)
    await asyncio.wait_for(failed.wait(), HUNG_S)
    assert len(server.limits) == 0
    listener.close()
    client.close()
