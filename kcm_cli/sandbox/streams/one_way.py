"""Sends the body of a response over a WebSocket: logs for browsers, watches for browsers and Java clients.

upstream: staging/src/k8s.io/streaming/pkg/httpstream/wsstream/stream.go
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.streams import websocket
from kcm_cli.sandbox.streams.pipe import parts, send_replies
from kcm_cli.serving.upgrade import Duplex, Upgraded, upgraded

BASE64 = "base64.binary.k8s.io"
PROTOCOLS = ("binary.k8s.io", BASE64, "")


def over_websocket(headers: Mapping[str, str], protocol: str, answer: Response | Stream) -> Upgraded:
    """The body of a response as messages, until its end or the client's."""

    def framed(data: bytes) -> bytes:
        return websocket.text(base64.b64encode(data)) if protocol == BASE64 else websocket.message(data)

    async def send(duplex: Duplex) -> None:
        duplex.write(framed(b""))  # as upstream, an empty message first
        chunks: Any = _once(answer.body) if isinstance(answer, Response) else answer.chunks
        async with aclosing(chunks):
            async for chunk in chunks:
                for part in parts(chunk):
                    duplex.write(framed(part))
                    await duplex.drained()

    return _upgraded(headers, protocol, send)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def events_over_websocket(headers: Mapping[str, str], answer: Stream, *, binary: bool) -> Response | Upgraded:
    """A watch, with one message for each event. ``binary``: the length before each event is omitted.

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
    """Sends until the end, or until the client closes; messages of the client are ignored."""

    async def send_all(duplex: Duplex) -> None:
        await send(duplex)
        duplex.write(websocket.close())
        await duplex.drained()

    async def ignore(duplex: Duplex) -> None:
        reader = websocket.Reader()
        with suppress(websocket.WebSocketError):  # as if the client had closed
            while not reader.closed and (data := await duplex.read()):
                for _ in reader.receive(data):
                    pass
                send_replies(reader.replies, duplex.write)
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
