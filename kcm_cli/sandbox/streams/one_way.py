"""An answer whose body goes over a WebSocket, as browsers read logs, and they and Java clients watches.

upstream: staging/src/k8s.io/streaming/pkg/httpstream/wsstream/stream.go
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.streams import websocket
from kcm_cli.sandbox.streams.upgrade import Duplex, Upgraded, upgraded

BASE64 = "base64.binary.k8s.io"
PROTOCOLS = ("binary.k8s.io", BASE64, "")


def over_websocket(headers: Mapping[str, str], protocol: str, answer: Response | Stream) -> Upgraded:
    """The body of an answer as messages; it ends when the client is gone."""

    def framed(data: bytes) -> bytes:
        return websocket.text(base64.b64encode(data)) if protocol == BASE64 else websocket.message(data)

    async def send(duplex: Duplex) -> None:
        duplex.write(framed(b""))  # as upstream's greeting
        if isinstance(answer, Response):
            duplex.write(framed(answer.body))
        else:
            chunks: Any = answer.chunks
            async with aclosing(chunks):
                async for chunk in chunks:
                    duplex.write(framed(chunk))
                    await duplex.drained()

    return _upgraded(headers, protocol, send)


def events_over_websocket(headers: Mapping[str, str], answer: Stream, *, binary: bool) -> Response | Upgraded:
    """A watch, one message for each event. ``binary``: the events have their length before them, which is left out.

    upstream: apiserver pkg/endpoints/handlers/watch.go#WatchServer.HandleWS
    """
    if refusal := websocket.refusal(headers):
        return refusal

    async def send(duplex: Duplex) -> None:
        chunks: Any = answer.chunks
        async with aclosing(chunks):
            async for chunk in chunks:
                events = _with_lengths(chunk) if binary else chunk.splitlines(keepends=True)
                duplex.write(b"".join(map(websocket.message if binary else websocket.text, events)))
                await duplex.drained()

    return _upgraded(headers, ", ".join(websocket.protocols(headers)), send)


def _with_lengths(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "big")
        yield data[start:at]


def _upgraded(headers: Mapping[str, str], protocol: str, send: Callable[[Duplex], Awaitable[None]]) -> Upgraded:
    """What is sent, up to its end or the client's; what the client sends is not read."""

    async def send_all(duplex: Duplex) -> None:
        await send(duplex)
        duplex.write(websocket.close())
        await duplex.drained()

    async def ignore(duplex: Duplex) -> None:
        reader = websocket.Reader()
        with suppress(websocket.WebSocketError):  # what came is no protocol: there is nobody to tell
            while not reader.closed and (data := await duplex.read()):
                for _ in reader.receive(data):
                    pass
                duplex.write(bytes(reader.replies))
                reader.replies.clear()
                await duplex.drained()

    async def serve(duplex: Duplex) -> None:
        sending, ignoring = asyncio.ensure_future(send_all(duplex)), asyncio.ensure_future(ignore(duplex))
        try:
            await asyncio.wait((sending, ignoring), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in (sending, ignoring):
                part.cancel()
            await asyncio.wait((sending, ignoring))
        if not sending.cancelled():
            sending.result()

    return upgraded(websocket.answer_headers(headers, protocol), serve)
