"""HTTP/1.1 connections, on httptools.

This is no ASGI server: ASGI does not pass client certificates, and a request takes a third of the time that it takes
with uvicorn.

Guarantees: responses are sent in the order of their requests (pipelining). A watch ends as soon as its client
disconnects. A slow client delays only its own stream.
"""

import asyncio
import gzip
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import parse_qsl, unquote

import httptools

from kcm_cli.component.connection_limits import ConnectionLimits, Slot
from kcm_cli.component.tls_transport import PEER_CERTIFICATES
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.types import Dropped
from kcm_cli.sandbox.streams.upgrade import Upgraded

MAX_BODY_BYTES = 3 * 1024 * 1024
BODY_S = 60.0
"""The time limit for receiving a body."""
GZIP_BYTES = 128 * 1024
_GZIP_LEVEL = 1
_UNREAD_PARTS = 16
_PIPELINED, _PIPELINED_BYTES = 16, 64 * 1024
"""No more requests are read while more than ``_PIPELINED`` are waiting, or after one with such a large body."""
_log = logging.getLogger(__name__)
_FIRST_COUNTS = frozenset(("authorization", "content-type"))
"""Headers of which the first one is used, if they are repeated."""
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_BETWEEN_TOKENS = re.compile("[ ,\t]")
_NO_QUERY: tuple[tuple[str, str], ...] = ()
_REASONS = {
    **{
        101: "Switching Protocols",
        200: "OK",
        201: "Created",
        202: "Accepted",
        204: "No Content",
        206: "Partial Content",
        301: "Moved Permanently",
        304: "Not Modified",
        400: "Bad Request",
    },
    **{401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable"},
    **{409: "Conflict", 410: "Gone", 413: "Request Entity Too Large", 415: "Unsupported Media Type"},
    **{416: "Requested Range Not Satisfiable", 417: "Expectation Failed", 505: "HTTP Version Not Supported"},
    **{
        422: "Unprocessable Entity",
        429: "Too Many Requests",
        431: "Request Header Fields Too Large",
        500: "Internal Server Error",
    },
    **{501: "Not Implemented", 503: "Service Unavailable", 504: "Gateway Timeout"},
}

Handler = Callable[[Request, bytes | None], Awaitable[Response | Stream]]


class Connections(Protocol):
    """The server of connections."""

    handler: Handler
    open: "set[HttpConnection]"
    limits: ConnectionLimits

    def date(self) -> str:
        """The current Date header."""


class HttpConnection(asyncio.Protocol):
    """A connection of a client. ``slot``: its part of the server's limits."""

    def __init__(self, server: Connections, slot: Slot) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self.transport: asyncio.Transport | None = None
        self._peer: bytes | None = None
        self._waiting: deque[_Pending] = deque()
        self._task: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._closing = False
        self._last = b""
        """The last response before the connection is closed. No more is read."""
        self._expects = False
        """Whether the client waits for 100 Continue before it sends the body."""
        self._endless = False
        self._begun = False
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._length = 0
        self._slot = slot
        self._in_head = True
        self._head_begun = False
        self._rest = bytearray()
        self._tail = b""
        self._too_large = False
        self._upgrading = False
        self._duplex = _Duplex(self)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass
        self._slot.on_refusal(self.abort, self._refuse_head)
        self._server.open.add(self)
        self._peer = next(iter(transport.get_extra_info(PEER_CERTIFICATES) or ()), None)

    def data_received(self, data: bytes) -> None:
        slot = self._slot
        if self._closing or self._last:
            return
        if self._upgrading:
            self._duplex.feed(data)
            return
        if not self._fits(slot, len(data)):
            slot.refuse()
        elif not self._in_head or not self._head_begun:
            self._head_begun, self._tail = self._in_head, data[-3:]
            self._feed(data)
        else:
            self._feed_rest(data)

    def _fits(self, slot: Slot, count: int) -> bool:
        if self._in_head:
            return slot.received(count)
        return self._length > MAX_BODY_BYTES or slot.body(count)  # bodies that are too large are not kept

    def _feed_rest(self, data: bytes) -> None:
        """Parse a head that arrives in parts when it is complete. The parser would copy it for each part."""
        self._rest += data
        seen = self._tail + data
        self._tail = seen[-3:]
        if b"\n\r\n" in seen or b"\n\n" in seen:  # a line may end without a carriage return
            rest, self._rest = bytes(self._rest), bytearray()
            self._feed(rest)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrading = True
            self._duplex.feed(data[upgrade.args[0] :])
        except httptools.HttpParserInvalidMethodError:
            self._unknown_method(data)
        except httptools.HttpParserError:
            self._bad_request()

    def _bad_request(self) -> None:
        if self._too_large:
            self._slot.refuse()
        else:
            self._refuse(400, b"400 Bad Request")

    def _refuse_head(self) -> None:
        """Send 431 or 413. The limits close the connection later, so that the client can read it."""
        self._rest, self._body, self._headers = bytearray(), [], {}
        status, body = (431, b"431 Request Header Fields Too Large") if self._in_head else (413, _TOO_LARGE)
        self._refuse(status, body, close=False)

    def _unknown_method(self, data: bytes) -> None:
        """Parse a request with an unknown method as TRACE, which no path supports."""
        _, space, rest = data.partition(b" ")
        if not space or self._task is not None:  # the data may begin with other requests
            self._bad_request()
            return
        self._parser = httptools.HttpRequestParser(self)
        try:
            self._parser.feed_data(b"TRACE " + rest)
        except httptools.HttpParserError:
            self._bad_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open.discard(self)
        self.transport = None
        self._rest, self._body, self._headers = bytearray(), [], {}
        self._duplex.end()
        self._server.limits.leave(self._slot)
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        self.resume_writing()

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()
        self._slot.stalled = True

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
        self._slot.stalled = False

    # httptools' callbacks

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body, self._length = b"", {}, [], 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._slot.header():
            self._too_large = True
            raise ValueError("too many headers")  # ends the parsing
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._headers.get(key)
        if known is not None and key in _FIRST_COUNTS:
            return
        separator = "\n" if key.startswith("impersonate-") else ", "
        self._headers[key] = text if known is None else f"{known}{separator}{text}"

    def on_headers_complete(self) -> None:
        self._in_head = self._head_begun = False
        self._slot.idle(BODY_S)
        headers, version = self._headers, self._parser.get_http_version()
        if wrong := _wrong_head(version, self._url, headers):
            status, text = wrong
            self._refuse(status, text.encode())
        elif headers.get("expect") and version == "1.1" and _has_body(headers):
            self._expects = True
            self._ask_for_body()

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._length <= MAX_BODY_BYTES:
            self._body.append(body)

    def on_message_complete(self) -> None:
        self._in_head, self._expects = True, False
        if self._closing or self._last:
            return
        self._slot.complete()
        keep_alive = self._parser.should_keep_alive()
        request = _request(self._parser.get_method().decode("latin-1"), self._url, self._headers, self._body)
        self._waiting.append(_Pending(request, keep_alive, self._parser.get_http_version() == "1.0"))
        if self._length > MAX_BODY_BYTES:
            self._waiting.pop()
            self._refuse(413, _TOO_LARGE, "application/json")
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())
        elif (len(self._waiting) > _PIPELINED or self._length > _PIPELINED_BYTES) and self.transport is not None:
            self.transport.pause_reading()

    # Responses

    async def _serve(self) -> None:
        """Handle the waiting requests in order."""
        try:
            while self._waiting and not self._closing:
                await self._answer(self._waiting.popleft())
        except Dropped:
            self.abort()
        except Exception:  # noqa: BLE001 - a bug ends this connection, and is logged; its client must not wait
            _log.exception("Connection failed")
            self._fail()
        finally:
            self._task = None
        if self._last:
            self._send_last()
        self._ask_for_body()

    async def _answer(self, pending: "_Pending") -> None:
        self._begun = False
        if pending.request.method == "OPTIONS" and pending.request.path == "*":  # options of the server, not of a path
            answer: Response | Stream = Response(200, {}, b"")
        else:
            answer = await self._server.handler(pending.request, self._peer)
        if self._upgrading:  # the next bytes are not HTTP
            pending = pending._replace(keep_alive=False)
        if isinstance(answer, Upgraded):
            await self._upgrade(answer)
        elif isinstance(answer, Stream):
            pending = pending._replace(keep_alive=pending.keep_alive and not pending.old)
            await self._stream(answer, pending)
        else:
            await self._whole(pending, answer)
        if not pending.keep_alive or self._closing:
            self.close()
        elif self.transport is not None:
            self.transport.resume_reading()
            if not self._waiting:
                self._slot.idle()

    def _fail(self) -> None:
        if self._begun:
            self.abort()  # an incomplete response must not look complete
        else:
            self._closing = False
            self._last = self._refusal(500, _FAILED, "application/json")

    async def _whole(self, pending: "_Pending", answer: Response) -> None:
        body, encoding, request = answer.body, "", pending.request
        if len(body) >= GZIP_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
            encoding = "gzip"
            body = await asyncio.to_thread(gzip.compress, body, _GZIP_LEVEL)
        if self.transport is None:
            return
        length = f"Content-Length: {len(body)}\r\n"
        head = self._head(answer.status, answer.headers, pending, encoding, length)
        self._begun = True
        self.transport.write(head if request.method == "HEAD" else head + body)
        await self.drained()

    async def _stream(self, answer: Stream, pending: "_Pending") -> None:
        """Send a stream in chunks. With HTTP/1.0 it has none, and ends with the connection."""
        if self.transport is None:
            return
        chunked = "" if pending.old else "Transfer-Encoding: chunked\r\n"
        head = self._head(answer.status, answer.headers, pending, "", chunked)
        self._begun = True
        self.transport.write(head)
        self._endless = True
        chunks: Any = answer.chunks
        async with aclosing(chunks):
            async for chunk in chunks:
                if self.transport is None:
                    return
                if not chunk:  # an empty chunk would end the body
                    continue
                self.transport.write(chunk if pending.old else b"%x\r\n%s\r\n" % (len(chunk), chunk))
                if self._writable is not None:
                    await self.drained()
        self._endless = False
        if self.transport is not None and not pending.old:
            self.transport.write(b"0\r\n\r\n")

    async def _upgrade(self, answer: Upgraded) -> None:
        """Switch protocols. ``answer`` uses the connection until it returns or the client disconnects."""
        if self.transport is None or not self._upgrading:
            return
        lines = [f"HTTP/1.1 101 {_REASONS[101]}\r\n"]
        lines += [f"{_written(name)}: {answer.headers[name]}\r\n" for name in sorted(answer.headers)]
        self._begun = True
        self.transport.write("".join([*lines, "\r\n"]).encode("latin-1"))
        self._endless = True
        await answer.serve(self._duplex)

    async def drained(self) -> None:
        """Wait until the client has read enough (flow control)."""
        while self._writable is not None:
            await self._writable

    def _head(
        self, status: int, headers: Mapping[str, str], pending: "_Pending | None", encoding: str, length: str
    ) -> bytes:
        """The status line and headers. ``pending``: None if the request was refused before it was parsed."""
        old, keep_alive = pending is not None and pending.old, pending is not None and pending.keep_alive
        lines = [f"HTTP/1.{0 if old else 1} {status} {_REASONS.get(status, 'Unknown')}\r\n"]
        fields = {"cache-control": "no-cache, private", **headers}
        if encoding:
            varies = ["Accept-Encoding", fields["vary"]] if "vary" in fields else ["Accept-Encoding"]
            fields |= {"content-encoding": encoding, "vary": "\n".join(varies)}
        for name in sorted(fields):
            written = _written(name)
            lines += [f"{written}: {one}\r\n" for one in fields[name].split("\n")]
        if keep_alive == old:  # differs from the default of the HTTP version
            lines.append(f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n")
        lines.append(f"Date: {self._server.date()}\r\n{length}\r\n")
        return "".join(lines).encode("utf-8")

    def _refuse(
        self, status: int, body: bytes, content_type: str = "text/plain; charset=utf-8", *, close: bool = True
    ) -> None:
        """Send an error after all earlier responses, and read no more. close: close the connection then."""
        if self._closing or self._last:
            return
        self._last = self._refusal(status, body, content_type)
        if self._task is None:
            self._send_last(close=close)
        else:
            self._slot.complete()

    def _refusal(self, status: int, body: bytes, content_type: str) -> bytes:
        length = f"Content-Length: {len(body)}\r\n"
        return self._head(status, {"content-type": content_type}, None, "", length) + body

    def _send_last(self, *, close: bool = True) -> None:
        if self.transport is not None and not self._closing:
            self._closing = True
            self.transport.write(self._last)
            if close:
                self.close()

    def _ask_for_body(self) -> None:
        """Send 100 Continue after all earlier responses, if the client expects it."""
        if self._expects and self._task is None and self.transport is not None and not self._closing:
            self._expects = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def close(self) -> None:
        """Close the connection after the written data is sent."""
        self._closing = True
        if self.transport is not None:
            self.transport.close()

    @property
    def busy(self) -> bool:
        """Whether a request is in progress that is not a stream."""
        return self._task is not None and not self._endless

    def abort(self) -> None:
        """Close the connection at once."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
        if self.transport is not None:
            self.transport.abort()


class _Pending(NamedTuple):
    """A request that waits for its response. ``old``: HTTP/1.0."""

    request: Request
    keep_alive: bool
    old: bool


class _Duplex:
    """A connection after an upgrade. Reading pauses while received data is not consumed."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection
        self._parts: list[bytes] = []
        self._ended = False
        self._waiting: asyncio.Future[None] | None = None

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._parts.append(data)
        self._wake()
        transport = self._connection.transport
        if transport is not None and len(self._parts) > _UNREAD_PARTS:
            transport.pause_reading()

    def end(self) -> None:
        """Mark the end of the received data."""
        self._ended = True
        self._wake()

    async def read(self) -> bytes:
        while not any(self._parts) and not self._ended:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        found, self._parts = b"".join(self._parts), []
        if (transport := self._connection.transport) is not None:
            transport.resume_reading()
        return found

    def write(self, data: bytes) -> None:
        if (transport := self._connection.transport) is not None:
            transport.write(data)

    async def drained(self) -> None:
        await self._connection.drained()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


@lru_cache(512)
def _written(name: str) -> str:
    """A header's name in the form ``Content-Type``."""
    return name.title()


_FAILED = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"Internal error occurred: unexpected error, see the log of the server",'
    b'"reason":"InternalError","code":500}\n'
)
_TOO_LARGE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"Request entity too large: limit is 3145728","reason":"RequestEntityTooLarge","code":413}\n'
)


def _wrong_head(version: str, url: bytes, headers: Mapping[str, str]) -> tuple[int, str] | None:
    """Status and text of the error for a head that can be parsed and is not valid; None if it is valid.

    upstream: net/http server.go#readRequest, #serve, which responds before any handler is called
    """
    if version not in ("1.0", "1.1"):
        return (505, "505 HTTP Version Not Supported: unsupported protocol version") if version >= "2" else _BAD
    if version == "1.1" and "host" not in headers:
        return 400, "400 Bad Request: missing required Host header"
    if ", " in headers.get("host", "") or _BAD_ESCAPE.search(url.partition(b"?")[0].decode("latin-1")):
        return _BAD
    if "transfer-encoding" in headers and version == "1.0":
        return _BAD
    if headers.get("transfer-encoding", "chunked").lower() != "chunked":
        return 501, "Unsupported transfer encoding"
    if (expected := headers.get("expect")) and "100-continue" not in _BETWEEN_TOKENS.split(expected.lower()):
        return 417, ""
    return None


_BAD = 400, "400 Bad Request"


def _has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _request(method: str, url: bytes, headers: dict[str, str], body: list[bytes]) -> Request:
    target = url.decode("latin-1")
    path, _, text = target.partition("?")
    if not path.startswith(("/", "*")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    if method != "PATCH" and not headers.get("content-type", "a").islower():
        headers["content-type"] = headers["content-type"].lower()
    query = tuple(parse_qsl(_readable(text), keep_blank_values=True)) if text else _NO_QUERY
    return Request(method, unquote(path) if "%" in path else path, query, headers, b"".join(body))


def _readable(query: str) -> str:
    """The query without the parameters that Go ignores: those with a semicolon or an invalid escape."""
    if ";" not in query and not _BAD_ESCAPE.search(query):
        return query
    return "&".join(part for part in query.split("&") if ";" not in part and not _BAD_ESCAPE.search(part))
