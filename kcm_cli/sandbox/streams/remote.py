"""exec and attach: standard streams over a WebSocket or SPDY, and the final status.

upstream: staging/src/k8s.io/{apimachinery/pkg/util,cri-streaming/pkg/streaming}/remotecommand
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.streams import spdy, websocket
from kcm_cli.sandbox.streams.pipe import Pipe, parts, send_replies
from kcm_cli.serving.upgrade import Duplex, Upgraded, upgraded

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_WITH_CLOSE = "v5.channel.k8s.io"
_PLAIN = ("channel.k8s.io", "base64.channel.k8s.io", "")
"""The subprotocols without a Status at the end."""
WEBSOCKETS = (_WITH_CLOSE, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", *_PLAIN)
SPDY = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_NAMES = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_CREATION_S = 30.0


class Wanted(msgspec.Struct, frozen=True):
    """The streams that a client requests."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


class Console:
    """The standard streams of a command. ``stdin`` is empty if the client does not request it."""

    def __init__(self, duplex: Duplex, wanted: Wanted) -> None:
        self.wanted = wanted
        self.stdin = Pipe()
        self._duplex = duplex
        if not wanted.stdin:
            self.stdin.end()

    async def write(self, data: bytes, *, error: bool = False) -> None:
        """Write to standard output, or to standard error (which is standard output on a terminal)."""
        error = error and not self.wanted.tty
        if self.wanted.stderr if error else self.wanted.stdout:
            for part in parts(data):
                self._send(STDERR if error else STDOUT, part)
                await self._duplex.drained()

    def _send(self, channel: int, data: bytes) -> None:
        raise NotImplementedError

    async def pump(self) -> None:
        """Read what the client sends, until it closes the connection."""
        raise NotImplementedError

    def finish(self, status: Doc) -> None:
        """Send the final status, and close the streams."""
        raise NotImplementedError


Program = Callable[[Console], Awaitable[Doc]]
"""Runs a command; returns its end as a Status."""


class _WebSocketConsole(Console):
    def __init__(self, duplex: Duplex, wanted: Wanted, protocol: str) -> None:
        super().__init__(duplex, wanted)
        self._protocol = protocol
        self._send(STDOUT if wanted.stdout else STDERR if wanted.stderr else ERROR, b"")  # empty first, as upstream

    def _send(self, channel: int, data: bytes) -> None:
        self._duplex.write(websocket.of_channel(self._protocol, channel, data))

    async def pump(self) -> None:
        reader = websocket.ChannelReader(text=websocket.is_text(self._protocol))
        while not reader.closed and (data := await self._duplex.read()):
            for channel, sent in reader.channels(data):
                if channel == STDIN:
                    await self.stdin.write(sent)
                elif channel == CLOSE and sent == bytes([STDIN]) and self._protocol == _WITH_CLOSE:
                    self.stdin.end()
            send_replies(reader.replies, self._duplex.write)

    def finish(self, status: Doc) -> None:
        if self._protocol not in _PLAIN:
            self._send(ERROR, codec.encode(status))
        elif status.get("status") != "Success":
            self._send(ERROR, str(status.get("message", "")).encode())
        self._duplex.write(websocket.close())


class _SpdyConsole(Console):
    def __init__(self, duplex: Duplex, wanted: Wanted, protocol: str) -> None:
        super().__init__(duplex, wanted)
        self._protocol = protocol
        self._session = spdy.Session()
        self._streams: dict[int, int] = {}
        self._names: dict[int, int] = {}
        self.complete = asyncio.Event()
        channels = [(STDIN, wanted.stdin), (STDOUT, wanted.stdout), (STDERR, wanted.stderr and not wanted.tty)]
        self._missing = {ERROR, *(channel for channel, asked in channels if asked)}

    def _send(self, channel: int, data: bytes) -> None:
        if (stream := self._streams.get(channel)) is not None:
            self._duplex.write(self._session.data(stream, data))

    async def pump(self) -> None:
        while data := await self._duplex.read():
            for event in self._session.receive(data):
                match event:
                    case spdy.Opened(stream, headers):
                        self._opened(stream, headers)
                    case spdy.Data(stream, sent, end) if self._names.get(stream) == STDIN:
                        await self.stdin.write(sent)
                        if end:
                            self.stdin.end()
            send_replies(self._session.replies, self._duplex.write)

    def _opened(self, stream: int, headers: Mapping[str, str]) -> None:
        channel = _NAMES.get(headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            return
        self._streams[channel], self._names[stream] = stream, channel
        self._duplex.write(self._session.accept(stream))
        self._missing.discard(channel)
        if not self._missing:
            self.complete.set()

    def finish(self, status: Doc) -> None:
        if self._protocol == "v4.channel.k8s.io":
            self._send(ERROR, codec.encode(status))
        elif status.get("status") != "Success":
            self._send(ERROR, str(status.get("message", "")).encode())
        for stream in self._streams.values():
            self._duplex.write(self._session.data(stream, b"", end=True))


def over_websocket(headers: Mapping[str, str], wanted: Wanted, protocol: str, program: Program) -> Upgraded:
    """The response to a client that uses a WebSocket."""

    async def serve(duplex: Duplex) -> None:
        await _played(_WebSocketConsole(duplex, wanted, protocol), program)

    return upgraded(websocket.answer_headers(headers, protocol), serve)


def over_spdy(wanted: Wanted, protocol: str, program: Program) -> Upgraded:
    """The response to a client that uses SPDY/3.1."""

    async def serve(duplex: Duplex) -> None:
        console = _SpdyConsole(duplex, wanted, protocol)

        async def program_with_streams(console_: Console) -> Doc:
            async with asyncio.timeout(_CREATION_S):
                await console.complete.wait()
            return await program(console_)

        await _played(console, program_with_streams)

    headers = {"upgrade": "SPDY/3.1", "connection": "Upgrade", "x-stream-protocol-version": protocol}
    return upgraded(headers, serve)


async def _played(console: Console, program: Program) -> None:
    """Run a command until it ends or the client closes the connection."""
    pump = asyncio.ensure_future(console.pump())
    work = asyncio.ensure_future(program(console))
    try:
        await asyncio.wait((pump, work), return_when=asyncio.FIRST_COMPLETED)
        if pump.done():
            console.stdin.end()
            if pump.exception() is not None:  # the client violates the protocol
                return
            await asyncio.wait((work,), timeout=_GOODBYE_S)  # a command may do more at the end of its input
        elif work.done():
            console.finish(work.result())
            async with asyncio.timeout(_GOODBYE_S):
                await pump  # the client closes when it has read everything
    except TimeoutError:
        pass
    finally:
        for one in (pump, work):
            one.cancel()
        await asyncio.wait((pump, work))


_GOODBYE_S = 1.0
