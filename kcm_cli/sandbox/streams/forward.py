"""Forwards ports of pods to servers of this machine: over SPDY, over SPDY in a WebSocket, or over a WebSocket.

upstream: staging/src/k8s.io/{apimachinery/pkg/util,cri-streaming/pkg/streaming}/portforward
"""

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from kcm_cli.component.clock import in_real_time
from kcm_cli.sandbox.streams import spdy, websocket
from kcm_cli.sandbox.streams.pipe import PART, Pipe, send_replies
from kcm_cli.serving.upgrade import Duplex, Upgraded, upgraded

PROTOCOL = "portforward.k8s.io"
TUNNEL = f"SPDY/3.1+{PROTOCOL}"
CHANNELS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io")
_LINGER_S = 1.0
"""How long the one direction of a connection goes on after the other has ended, as with containerd."""


class Network(Protocol):
    """The network of a pod."""

    def find(self, port: int) -> tuple[str, int]:
        """The host and port that a port is forwarded to. Raises LookupError with the reason if there are none."""

    async def ended(self) -> None:
        """Return when there is no network any more."""


def over_spdy(network: Network) -> Upgraded:
    """The response to a client that uses SPDY/3.1."""

    async def serve(duplex: Duplex) -> None:
        await _Forwarder(duplex.write, duplex.drained, network).run(duplex.read)

    return upgraded({"upgrade": "SPDY/3.1", "connection": "Upgrade", "x-stream-protocol-version": PROTOCOL}, serve)


def tunnelled(headers: Mapping[str, str], network: Network) -> Upgraded:
    """The response to a client that tunnels SPDY in the messages of a WebSocket."""

    async def serve(duplex: Duplex) -> None:
        reader = websocket.Reader()

        async def read() -> bytes:
            while not reader.closed and (data := await duplex.read()):
                found = b"".join(part.data for part in reader.receive(data))
                send_replies(reader.replies, duplex.write)
                if found:
                    return found
            return b""

        def write(data: bytes) -> None:
            duplex.write(websocket.message(data))

        await _Forwarder(write, duplex.drained, network).run(read)
        duplex.write(websocket.close())

    return upgraded(websocket.answer_headers(headers, TUNNEL), serve)


def most_ports(headers: Mapping[str, str]) -> int:
    """How many ports the channels of the client's subprotocol are enough for."""
    return websocket.most_channels(websocket.chosen(headers, CHANNELS) or "") // 2


def over_channels(headers: Mapping[str, str], ports: Sequence[int], network: Network) -> Upgraded:
    """The response to a client that uses a WebSocket with two channels for each port, for data and for an error.

    It is closed when the connections of all ports have ended.
    """
    protocol = websocket.chosen(headers, CHANNELS) or ""

    async def read(duplex: Duplex, pipes: Sequence[Pipe]) -> None:
        reader = websocket.ChannelReader(text=websocket.is_text(protocol))
        with contextlib.suppress(websocket.WebSocketError):
            while not reader.closed and (data := await duplex.read()):
                for channel, sent in reader.channels(data):
                    if channel % 2 == 0 and channel // 2 < len(pipes):
                        await pipes[channel // 2].write(sent)
                send_replies(reader.replies, duplex.write)
        for pipe in pipes:
            pipe.end()

    async def serve(duplex: Duplex) -> None:
        pipes = [Pipe() for _ in ports]
        async with asyncio.TaskGroup() as group:
            links = []
            for index, port in enumerate(ports):
                for channel in (2 * index, 2 * index + 1):
                    duplex.write(websocket.of_channel(protocol, channel, struct.pack("<H", port)))
                link = _ChannelLink(duplex, protocol, index, pipes[index], network)
                links.append(group.create_task(link.run(port)))
            reading = group.create_task(read(duplex, pipes))
            await asyncio.wait(links)
            reading.cancel()
        duplex.write(websocket.close())
        await duplex.drained()

    return upgraded(websocket.answer_headers(headers, protocol), serve)


class _ChannelLink(msgspec.Struct):
    duplex: Duplex
    protocol: str
    index: int
    pipe: Pipe
    network: Network

    async def run(self, port: int) -> None:
        async def send(data: bytes) -> None:
            if data:
                self.duplex.write(websocket.of_channel(self.protocol, 2 * self.index, data))
                await self.duplex.drained()

        problem = await _linked(port, self.network, self.pipe, send)
        if problem:
            self.duplex.write(websocket.of_channel(self.protocol, 2 * self.index + 1, problem.encode()))


class _Forwarder(msgspec.Struct):
    """All connections of one SPDY session."""

    write: Callable[[bytes], None]
    drained: Callable[[], Awaitable[None]]
    network: Network
    session: spdy.Session = msgspec.field(default_factory=spdy.Session)
    pipes: dict[int, Pipe] = msgspec.field(default_factory=dict)
    errors: dict[str, int] = msgspec.field(default_factory=dict)

    async def run(self, read: Callable[[], Awaitable[bytes]]) -> None:
        async with asyncio.TaskGroup() as group:
            with contextlib.suppress(spdy.SpdyError, websocket.WebSocketError):
                while data := await read():
                    for event in self.session.receive(data):
                        await self._on(event, group)
                    send_replies(self.session.replies, self.write)
            for pipe in self.pipes.values():
                pipe.end()

    async def _on(self, event: spdy.Opened | spdy.Data | spdy.Reset, group: asyncio.TaskGroup) -> None:
        match event:
            case spdy.Opened(stream, headers):
                self.write(self.session.accept(stream))
                request = headers.get("requestid", "")
                if headers.get("streamtype") == "error":
                    self.errors[request] = stream
                elif headers.get("streamtype") == "data":
                    self.pipes[stream] = Pipe()
                    text = headers.get("port", "")
                    port = int(text) if len(text) <= 5 and text.isascii() and text.isdigit() else 0
                    group.create_task(self._link(stream, port, request))
            case spdy.Data(stream, data, end):
                pipe = self.pipes.get(stream)
                if pipe is not None:
                    await pipe.write(data)
                    if end:
                        pipe.end()
            case spdy.Reset(stream):
                pipe = self.pipes.get(stream)
                if pipe is not None:
                    pipe.end()

    async def _link(self, stream: int, port: int, request: str) -> None:
        async def send(data: bytes) -> None:
            self.write(self.session.data(stream, data, end=not data))
            await self.drained()

        problem = await _linked(port, self.network, self.pipes[stream], send)
        self.pipes.pop(stream, None)
        error = self.errors.pop(request, None)
        if error is not None:
            self.write(self.session.data(error, problem.encode(), end=True))
        if problem:
            self.write(self.session.data(stream, b"", end=True))


async def _linked(port: int, network: Network, pipe: Pipe, send: Callable[[bytes], Awaitable[None]]) -> str:
    """Copy bytes in both directions until the server has ended, the network, or the client ``_LINGER_S`` ago; returns
    the error, or nothing. ``send``: empty bytes are the end."""
    try:
        return await _copied(port, network, pipe, send)
    finally:
        pipe.end()  # what the client still sends is dropped: nobody reads it, and its other connections wait for that


async def _copied(port: int, network: Network, pipe: Pipe, send: Callable[[bytes], Awaitable[None]]) -> str:
    try:
        host, target = network.find(port)
        reader, writer = await asyncio.open_connection(host, target)
    except LookupError as error:
        return str(error.args[0])
    except OSError as error:
        return f"cannot connect to port {port}: {error.strerror or error}"

    async def upwards() -> None:
        while data := await pipe.read():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def downwards() -> None:
        while data := await reader.read(PART):
            await send(data)

    _, down, gone = ways = [asyncio.ensure_future(way) for way in (upwards(), downwards(), network.ended())]
    try:
        ended, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ended:
            way.result()
        if not (down.done() or gone.done()):
            with in_real_time():  # the server's answer comes in it
                await asyncio.wait((down, gone), timeout=_LINGER_S, return_when=asyncio.FIRST_COMPLETED)
        await send(b"")
    except OSError as error:
        return f"the connection to port {port} broke: {error.strerror or error}"
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        writer.close()
    return ""
