"""Forwarded ports: what the end of one connection means for the others of its client, and the time of servers."""

import asyncio
import socket
import threading
import zlib
from collections.abc import Iterator

import pytest

from kcm_cli.sandbox.streams import spdy
from kcm_cli.sandbox.streams.forward import CHANNELS, over_channels, over_spdy
from tests.kit.streams import masked, syn_stream
from tests.kit.warp_loops import running_loop

pytestmark = pytest.mark.real_time
PART = b"x" * (256 << 10)


class Net:
    """A pod with servers at some ports. It never ends."""

    def __init__(self, **servers: int) -> None:
        self._servers = servers

    def find(self, port: int) -> tuple[str, int]:
        if f"p{port}" not in self._servers:
            raise LookupError(f"nothing at {port}")
        return "127.0.0.1", self._servers[f"p{port}"]

    async def ended(self) -> None:
        await asyncio.Future()


class Client:
    """Sends what it is given, and closes when it has heard something."""

    def __init__(self, sent: Iterator[bytes], wanted: bytes) -> None:
        self._sent, self._wanted = sent, wanted
        self._heard = asyncio.Event()
        self.written = b""

    async def read(self) -> bytes:
        if data := next(self._sent, b""):
            return data
        await self._heard.wait()
        return b""

    def write(self, data: bytes) -> None:
        self.written += data
        if self._wanted in self.written:
            self._heard.set()

    async def drained(self) -> None:
        await asyncio.sleep(0)


async def test_a_server_that_closes_early_does_not_hold_up_other_connections() -> None:
    """As one that answers an upload with 413."""

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    def sent() -> Iterator[bytes]:
        writer = zlib.compressobj(zdict=spdy._DICTIONARY)
        for first, port in ((1, "80"), (5, "81")):
            yield syn_stream(writer, first, {"streamtype": "error", "port": port, "requestid": port})
            yield syn_stream(writer, first + 2, {"streamtype": "data", "port": port, "requestid": port})
            if port == "80":
                for _ in range(128):
                    yield spdy.Session.data(3, PART)

    async with await asyncio.start_server(close, "127.0.0.1") as server:
        client = Client(sent(), b"nothing at 81")
        network = Net(p80=server.sockets[0].getsockname()[1])
        await asyncio.wait_for(over_spdy(network).serve(client), 10)
    assert b"nothing at 81" in client.written


async def test_a_port_that_has_ended_does_not_hold_up_other_ports() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(64)).upper())
        writer.close()

    def sent() -> Iterator[bytes]:
        yield from [masked(2, b"\0" + PART)] * 8
        yield masked(2, b"\2hello")

    async with await asyncio.start_server(echo, "127.0.0.1") as server:
        client = Client(sent(), b"HELLO")
        headers = {"sec-websocket-key": "a", "sec-websocket-protocol": CHANNELS[0]}
        network = Net(p81=server.sockets[0].getsockname()[1])
        await asyncio.wait_for(over_channels(headers, (80, 81), network).serve(client), 10)
    assert b"nothing at 80" in client.written and b"\2HELLO" in client.written


def test_the_answer_after_a_half_close_comes_in_real_time() -> None:
    """The server is outside of the cluster's time."""
    ended, go_on = threading.Event(), threading.Event()

    def answer(server: socket.socket) -> None:
        one, _ = server.accept()
        with one:
            while one.recv(64):
                pass
            ended.set()
            go_on.wait(5)
            one.sendall(b"late")

    def sent() -> Iterator[bytes]:
        writer = zlib.compressobj(zdict=spdy._DICTIONARY)
        yield syn_stream(writer, 1, {"streamtype": "data", "port": "80", "requestid": "0"})
        yield spdy.Session.data(1, b"hello", end=True)

    async def forwarded(port: int) -> bytes:
        client = Client(sent(), spdy.Session.data(1, b"", end=True))
        await over_spdy(Net(p80=port)).serve(client)
        return client.written

    with socket.create_server(("127.0.0.1", 0)) as server, running_loop() as loop:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        found = asyncio.run_coroutine_threadsafe(forwarded(server.getsockname()[1]), loop)
        assert ended.wait(5)
        journey = threading.Thread(target=loop.advance, args=(60,))
        journey.start()
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(5)
        go_on.set()
        assert b"late" in found.result(5)
        journey.join(5)
        assert not journey.is_alive()
