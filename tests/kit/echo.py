"""A connection to a server of this process that responds with what it receives."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.http.server import LIMITS, HttpServer
from kcm_cli.serving.connection_limits import Limits

JSON = {"content-type": "application/json"}
HUNG_S = 10.0


class Echo:
    """Responds with the request. /slow waits, /stream does not end, /big is large."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self, request: Request, peer: bytes | None) -> Response | Stream:
        if request.path == "/slow":
            await self.let_go.wait()
        if request.path == "/stream":
            return Stream(200, JSON, self._frames())
        if request.path == "/broken":
            raise RuntimeError("broken")
        if request.path == "/breaks":
            return Stream(200, JSON, self._half())
        if request.path == "/gaps":
            return Stream(200, JSON, self._gaps())
        if request.path.endswith("/big"):
            return Response(200, JSON, b"x" * 200_000)
        seen = {"method": request.method, "path": request.path, "query": request.query, "length": len(request.body)}
        seen["as"] = [text for name, text in sorted(request.headers.items()) if name.startswith("impersonate-")]
        return Response(200, {**JSON, "warning": "one\ntwo"}, msgspec.json.encode(seen))

    async def _half(self) -> AsyncIterator[bytes]:
        yield b'{"n":'
        raise RuntimeError("broken")

    async def _gaps(self) -> AsyncIterator[bytes]:
        for part in (b"a", b"", b"b"):
            yield part

    async def _frames(self) -> AsyncIterator[bytes]:
        try:
            yield b'{"n":1}\n'
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def answer(reader: asyncio.StreamReader, *, head: bool = False) -> tuple[int, list[str], bytes]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    status = int(lines[0].split(" ")[1])
    lengths = [int(line.partition(":")[2]) for line in lines if line.startswith("Content-Length")]
    body = b"" if head else await (reader.readexactly(lengths[0]) if lengths else reader.read())
    return status, lines[1:-2], body


@dataclass
class Client:
    """A connection to a server that echoes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: HttpServer
    echo: Echo

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, *, head: bool = False) -> tuple[int, list[str], bytes]:
        """(status, headers, body). head: it has no body."""
        return await answer(self.reader, head=head)

    async def json(self) -> dict[str, object]:
        """The body of the next answer: the request, as ``Echo`` saw it."""
        found: dict[str, object] = msgspec.json.decode((await self.answer())[2])
        return found


@asynccontextmanager
async def connected(limits: Limits = LIMITS) -> AsyncIterator[Client]:
    """A server and a connection, while inside."""
    echo = Echo()
    server = HttpServer(echo, LoopClock(), limits)
    listener = socket.create_server(("127.0.0.1", 0))
    await server.start([listener], None)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    guard = asyncio.get_running_loop().call_later(HUNG_S, writer.transport.abort)  # what reads then raises
    try:
        yield Client(reader, writer, server, echo)
    finally:
        guard.cancel()
        writer.close()
        await server.stop(0.1)
