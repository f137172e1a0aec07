"""HTTP/1.1 connections of a server, on httptools.

Guarantees: a connection has one request at a time, and what follows it is neither parsed nor read on until it has been
answered. The bytes of a request count for the limits of all connections until then. A stream ends as soon as its client
disconnects. A slow client delays only its own connection. Requests wait in a ``FairQueue``.

upstream: net/http/server.go
"""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from functools import lru_cache
from typing import Any, Protocol, cast

import httptools
import msgspec

from kcm_cli.rest.transport import BLANK, Response, Stream, discard
from kcm_cli.serving.connection_limits import ConnectionLimits, Slot
from kcm_cli.serving.fair_queue import FairQueue
from kcm_cli.serving.tls_transport import PEER_CERTIFICATES
from kcm_cli.serving.upgrade import Upgraded

MAX_BODY_BYTES = 3 * 1024 * 1024
BODY_S = 60.0
"""The time limit for receiving a body."""
_PIECE = 512 * 1024
"""So much of a large answer is written at once: to encrypt it takes a millisecond."""
_UNREAD_PARTS = 16
_CHUNKED_BYTES = 512
"""So much of a chunked body is parsed at once. It may end there, and be followed by a few small requests."""
_HEAD_END = re.compile(rb"\n\r?\n")
"""A lone newline ends a line, too: such heads are refused at once."""
_log = logging.getLogger(__name__)
_BAD_ESCAPE = re.compile(b"%(?![0-9A-Fa-f]{2})")
_BETWEEN_TOKENS = re.compile(b"[ ,\t]")
_HOST = re.compile(rb"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*+")
"""upstream: golang.org/x/net/http/httpguts ValidHostHeader."""
_FRAMING = frozenset((b"host", b"expect", b"transfer-encoding", b"content-length"))
_TEXT, _JSON = "text/plain; charset=utf-8", "application/json"
_BARE: Mapping[str, str] = {}
"""The headers of a response that no handler has made."""
_BAD = "400 Bad Request"
_LARGE_HEAD, _LARGE_BODY = "431 Request Header Fields Too Large", "413 Request Entity Too Large"
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
    **{203: "Non-Authoritative Information", 205: "Reset Content", 300: "Multiple Choices", 302: "Found"},
    **{303: "See Other", 307: "Temporary Redirect", 308: "Permanent Redirect", 402: "Payment Required"},
    **{407: "Proxy Authentication Required", 408: "Request Timeout", 411: "Length Required"},
    **{412: "Precondition Failed", 414: "Request URI Too Long", 418: "I'm a teapot", 421: "Misdirected Request"},
    **{423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required"},
    **{428: "Precondition Required", 451: "Unavailable For Legal Reasons", 502: "Bad Gateway"},
    **{507: "Insufficient Storage", 508: "Loop Detected", 511: "Network Authentication Required"},
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


class Received(msgspec.Struct, frozen=True, gc=False):
    """A request. Header names are as received. version: of HTTP, ``1.0`` or ``1.1``. address: the client's."""

    method: str
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    keep_alive: bool
    address: str = ""

    @property
    def old(self) -> bool:
        """Whether it is of HTTP/1.0."""
        return self.version == "1.0"


class Dropped(Exception):
    """The connection ends without a response or in the middle of it. ``effect``: whether the request took effect."""

    def __init__(self, *, effect: bool) -> None:
        super().__init__("injected: the connection was broken")
        self.effect = effect


Handler = Callable[[Received], Awaitable[Response | Stream]]


class Connections(Protocol):
    """The server of connections."""

    open: "set[HttpConnection]"
    limits: ConnectionLimits
    queue: FairQueue

    def handler(self, certificates: tuple[bytes, ...]) -> Handler:
        """The handler of a connection's requests. certificates: of its client (DER), its own first."""

    def date(self) -> str:
        """The current Date header."""


class HttpConnection(asyncio.Protocol):
    """A connection of a client. ``slot``: its part of the server's limits."""

    continued = False

    def __init__(self, server: Connections, slot: Slot) -> None:
        self._server = server
        self._slot = slot
        self._parser = httptools.HttpRequestParser(self)
        self.transport: asyncio.Transport | None = None
        self._handler: Handler = _unopened
        self._pending: deque[Received] = deque()
        self._task: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._closing = False
        self._last_request = False
        """Whether the connection is closed after the present request."""
        self._last = b""
        """The last response before the connection is closed. No more is read."""
        self._expects = False
        """Whether the client waits for 100 Continue before it sends the body."""
        self._endless = False
        self._begun = False
        self._rest = bytearray()
        """What has been received and not parsed."""
        self._searched = 0
        self._fed = b""
        """The last bytes that were parsed: the end of a head may begin with them."""
        self._in_head = True
        self._head_begun = False
        self._left: int | None = 0
        """Bytes of the body that are to come; None: it is chunked."""
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._length = 0
        self._too_large = False
        self._upgrading = False
        self.switched = False
        """Whether the connection has another protocol now."""
        self._duplex = _Duplex(self)

    @property
    def address(self) -> str:
        """The client's address or network, by which requests take turns."""
        return self._slot.address

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass
        self._slot.on_refusal(self.abort, self._refuse_request)
        self._slot.wait(self._server.limits.settings.head_s)
        self._server.open.add(self)
        self._handler = self._server.handler(transport.get_extra_info(PEER_CERTIFICATES) or ())

    def data_received(self, data: bytes) -> None:
        if self._closing or self._last:
            return
        if self._upgrading:
            self._duplex.feed(data)
            return
        if not self._fits(len(data)):
            self._slot.refuse()
            return
        self._rest += data
        self._parse()

    def _fits(self, count: int) -> bool:
        if self._in_head or self._busy:
            return self._slot.received(count)
        return self._slot.body(count)

    @property
    def _busy(self) -> bool:
        return self._task is not None or bool(self._pending)

    def _parse(self) -> None:
        """Parse what has been received, until a request is complete. What follows it waits."""
        while self._rest and not (self._busy or self._closing or self._last or self._upgrading):
            count = self._next()
            if not count:
                return
            piece = bytes(self._rest[:count])
            del self._rest[:count]
            self._searched = 0
            self._feed(piece)
        if self._rest and self.transport is not None:
            self.transport.pause_reading()

    def _next(self) -> int:
        """How much to parse next, so that it ends where the request ends. 0: wait for more.

        The first part of a head is parsed at once. The parser would copy an incomplete header for each other part, so
        that these wait for the end of the head.
        """
        if not self._in_head:
            return _CHUNKED_BYTES if self._left is None else self._left
        if not self._head_begun and self._rest.startswith((b"\r", b"\n")):  # empty lines before a request are skipped
            self._rest = self._rest.lstrip(b"\r\n")
        if self._head_begun and (end := _HEAD_END.search(self._fed + self._rest[:2])):
            return end.end() - len(self._fed)
        end = _HEAD_END.search(self._rest, max(0, self._searched - 2))
        if end is not None:
            return end.end()
        self._searched = len(self._rest)
        if self._head_begun:
            return 0
        return max(0, len(self._rest) - 2)  # the others may belong to the end of the head

    def _feed(self, data: bytes) -> None:
        if not self._in_head and self._left is not None:
            self._left -= len(data)
        self._fed = (self._fed + data)[-2:]
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._switch(data[upgrade.args[0] :])
        except httptools.HttpParserInvalidMethodError:
            self._unknown_method(data)
        except httptools.HttpParserError:
            self._bad_request()

    def _switch(self, first: bytes) -> None:
        """What follows the request is of another protocol."""
        self._upgrading = True
        if rest := first + bytes(self._rest):
            self._rest.clear()
            self._duplex.feed(rest)

    def _bad_request(self) -> None:
        if self._too_large:
            self._slot.refuse()
        else:
            self._refuse(_BAD)

    def _refuse_request(self) -> None:
        """Answer 431 or 413 instead of what the request would get, if anything. The limits close the connection later,
        so that the client can read it."""
        if self._begun and self._task is not None:
            self.abort()
            return
        large = (_LARGE_HEAD,) if self._in_head and not self._slot.body_bytes else (_LARGE_BODY, _TOO_LARGE, _JSON)
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._pending.clear()
        self._refuse(*large, close=False)

    def _unknown_method(self, data: bytes) -> None:
        """Parse a request with an unknown method as TRACE, which no path supports."""
        _, space, rest = data.partition(b" ")
        if not space or self._busy:  # the data may begin with other requests
            self._bad_request()
            return
        self._parser, known = httptools.HttpRequestParser(self), b"TRACE " + rest
        try:
            self._parser.feed_data(known)
        except httptools.HttpParserUpgrade as upgrade:
            self._switch(known[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._bad_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open.discard(self)
        self._server.queue.discard(self)
        self.transport = None
        self._forget()
        self._duplex.end()
        self._server.limits.leave(self._slot)
        self._pending.clear()
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
        self._head_begun = True
        self._target, self._headers, self._body, self._length = b"", [], [], 0

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._slot.header():
            self._end_parsing()
        self._headers.append((name, value.rstrip(BLANK)))

    def on_headers_complete(self) -> None:
        self._in_head = self._head_begun = False
        self._slot.wait(BODY_S)
        version, fields = self._parser.get_http_version(), _fields(self._headers)
        self._left = None if b"transfer-encoding" in fields else _length(fields)
        if self._left is not None and self._left > MAX_BODY_BYTES:
            self._end_parsing()
        elif wrong := _wrong_head(version, self._target, fields):
            self._refuse(*wrong)
        elif fields.get(b"expect") and version == "1.1" and self._left != 0:
            self._expects = True
            self._ask_for_body()

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._length > MAX_BODY_BYTES:
            self._end_parsing()
        self._body.append(body)

    def _end_parsing(self) -> None:
        self._too_large = True
        raise ValueError("the request is too large")

    def on_message_complete(self) -> None:
        self._in_head, self._expects = True, False
        if self._closing or self._last:
            return
        self._slot.complete()
        method, keep_alive = self._parser.get_method().decode("latin-1"), self._parser.should_keep_alive()
        version, body = self._parser.get_http_version(), b"".join(self._body)
        client = self._slot.client
        self._pending.append(Received(method, self._target, version, self._headers, body, keep_alive, client))
        self._forget(received=False)
        if self._task is None:
            self._server.queue.add(self)

    def _forget(self, *, received: bool = True) -> None:
        self._target, self._headers, self._body = b"", [], []
        if received:
            self._rest.clear()

    # Responses

    def proceed(self) -> None:
        """Start to handle the request."""
        if self._task is None and self._pending and not self._closing:
            self._task = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self) -> None:
        try:
            await self._answer(self._pending.popleft())
        except Dropped:
            self.abort()
        except Exception:  # noqa: BLE001 - a bug ends this connection, and is logged; its client must not wait
            _log.exception("Connection failed")
            self._fail()
        finally:
            if self._task is asyncio.current_task():  # else it was refused meanwhile
                self._task = None
                self._go_on()

    def _go_on(self) -> None:
        """After a request: with the next one, if there is any."""
        if self._last:
            self._send_last()
        elif self._pending:
            self._server.queue.add(self)
        elif self.transport is not None and not self._closing:
            self._slot.answered(len(self._rest))
            self._ask_for_body()
            self._parse()
            if not self._rest or not self._busy:
                self.transport.resume_reading()

    async def _answer(self, request: Received) -> None:
        self._begun = False
        if request.method == "OPTIONS" and request.target == b"*":  # options of the server, not of a path
            answer: Response | Stream = Response(200, _BARE, b"")
        else:
            answer = await self._handler(request)
        keep_alive = request.keep_alive and not (self._upgrading or self._last_request)
        if isinstance(answer, Upgraded):
            keep_alive = False  # the next bytes are not HTTP
            await self._upgrade(answer)
        elif isinstance(answer, Stream):
            keep_alive = keep_alive and not request.old
            await self._stream(answer, request, keep_alive)
        else:
            await self._whole(answer, request, keep_alive)
        if not keep_alive:
            self.close()

    def _fail(self) -> None:
        if self._begun:
            self.abort()  # an incomplete response must not look complete
        else:
            self._closing = False
            self._last = _refusal("500 Internal Server Error", _FAILED, _JSON)

    async def _whole(self, answer: Response, request: Received, keep_alive: bool) -> None:
        if self.transport is None:
            return
        length = f"Content-Length: {len(answer.body)}\r\n"
        head = self._head(answer.status, answer.headers, length, old=request.old, keep_alive=keep_alive)
        self._begun = True
        body = b"" if request.method == "HEAD" else answer.body
        self.transport.write(head + body[:_PIECE])
        await self.drained()
        for start in range(_PIECE, len(body), _PIECE):
            await asyncio.sleep(0)
            if self.transport is None:
                return
            self.transport.write(body[start : start + _PIECE])
            await self.drained()

    async def _stream(self, answer: Stream, request: Received, keep_alive: bool) -> None:
        """Send a stream, in chunks if its length is not known. With HTTP/1.0 it has none, and ends with the
        connection."""
        if self.transport is None:
            await discard(answer)
            return
        bodiless = request.method == "HEAD"
        chunked = not (bodiless or request.old or "content-length" in answer.headers)
        framing = "Transfer-Encoding: chunked\r\n" if chunked else ""
        head = self._head(answer.status, answer.headers, framing, old=request.old, keep_alive=keep_alive)
        self._begun = True
        self.transport.write(head)
        self._endless = True
        self._slot.forget()
        chunks: Any = answer.chunks
        async with aclosing(chunks):
            async for chunk in chunks:
                if self.transport is None:
                    return
                if not chunk or bodiless:  # an empty chunk would end the body
                    continue
                self.transport.write(b"%x\r\n%s\r\n" % (len(chunk), chunk) if chunked else chunk)
                if self._writable is not None:
                    await self.drained()
        self._endless = False
        if self.transport is not None and chunked:
            self.transport.write(b"0\r\n\r\n")

    async def _upgrade(self, answer: Upgraded) -> None:
        """Switch protocols. ``answer`` uses the connection until it returns or the client disconnects."""
        if self.transport is None:
            await discard(answer)
            return
        self._upgrading = True  # the parser has not seen what counts upstream, such as Connection: x-upgrade
        if self._rest:
            self._duplex.feed(bytes(self._rest))
            self._rest.clear()
        self.switched = True
        self.transport.resume_reading()
        lines = [f"HTTP/1.1 101 {_REASONS[101]}\r\n"]
        lines += _lines(answer.headers)
        self._begun = True
        self.transport.write("".join([*lines, "\r\n"]).encode("utf-8", "surrogateescape"))
        self._endless = True
        self._slot.forget()
        await answer.serve(self._duplex)

    async def drained(self) -> None:
        """Wait until the client has read enough (flow control)."""
        while self._writable is not None:
            await self._writable

    def _head(
        self, status: int, headers: Mapping[str, str], length: str, *, old: bool = False, keep_alive: bool = False
    ) -> bytes:
        """The status line and headers."""
        lines = [f"HTTP/1.{0 if old else 1} {status} {_REASONS.get(status) or f'status code {status}'}\r\n"]
        lines += _lines(headers if headers is _BARE else {"cache-control": "no-cache, private", **headers})
        if keep_alive == old:  # differs from the default of the HTTP version
            lines.append(f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n")
        lines.append(f"Date: {self._server.date()}\r\n{length}\r\n")
        return "".join(lines).encode("utf-8", "surrogateescape")

    def _refuse(self, status: str, body: bytes | None = None, media_type: str = _TEXT, *, close: bool = True) -> None:
        """Send an error after the answers to earlier requests, and read no more. close: close the connection then."""
        self._forget()
        if self._closing or self._last:
            return
        self._last = _refusal(status, status.encode() if body is None else body, media_type)
        if not self._busy:
            self._send_last(close=close)

    def _send_last(self, *, close: bool = True) -> None:
        if self.transport is not None and not self._closing:
            self._closing = True
            self.transport.write(self._last)
            if close:
                self.close()

    def _ask_for_body(self) -> None:
        """Send 100 Continue after all earlier responses, if the client expects it."""
        if self._expects and not self._busy and self.transport is not None and not self._closing:
            self._expects = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def shutdown(self) -> None:
        """Close the connection after the present response, except a stream."""
        self._last_request = True
        if not self.busy:
            self.close()

    def close(self) -> None:
        """Close the connection after the written data is sent."""
        self._closing = True
        if self.transport is not None:
            self.transport.close()

    @property
    def busy(self) -> bool:
        """Whether a request is in progress that is not a stream."""
        return self._busy and not self._endless

    def abort(self) -> None:
        """Close the connection at once."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
        if self.transport is not None:
            self.transport.abort()


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
        if transport is not None and (len(self._parts) > _UNREAD_PARTS or not self._connection.switched):
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


def _lines(headers: Mapping[str, str]) -> Iterator[str]:
    """The lines of headers. A value with newlines is that of several. Bytes that are not UTF-8 are in their escaped
    form (``surrogateescape``)."""
    for name in sorted(headers):
        written = _written(name)
        for one in headers[name].split("\n"):
            yield f"{written}: {one}\r\n"


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


def _fields(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers that say how a request is to be read, by name; repeated ones are joined."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if (name := name.lower()) in _FRAMING:
            found[name] = found[name] + b", " + value if name in found else value
    return found


def _length(fields: Mapping[bytes, bytes]) -> int:
    """The Content-Length; 0 without one. The parser has checked it."""
    return int(fields.get(b"content-length", b"0"))


def _wrong_head(version: str, target: bytes, fields: Mapping[bytes, bytes]) -> tuple[str, bytes | None] | None:
    """Status and body of the error for a head that can be parsed and is not valid; None if it is valid.

    upstream: net/http server.go#readRequest, #serve, which responds before any handler is called
    """
    if version not in ("1.0", "1.1"):
        status = "505 HTTP Version Not Supported: unsupported protocol version" if version >= "2" else _BAD
        return status, None
    if version == "1.1" and b"host" not in fields:
        return f"{_BAD}: missing required Host header", None
    if b", " in fields.get(b"host", b"") or _BAD_ESCAPE.search(target.partition(b"?")[0]):
        return _BAD, None
    if not _HOST.fullmatch(fields.get(b"host", b"")):
        return f"{_BAD}: malformed Host header", None
    if b"transfer-encoding" in fields and version == "1.0":
        return _BAD, None
    if fields.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
        return "501 Not Implemented", b"Unsupported transfer encoding"
    if (expected := fields.get(b"expect")) and b"100-continue" not in _BETWEEN_TOKENS.split(expected.lower()):
        return "417 Expectation Failed", b""
    return None


def _refusal(status: str, body: bytes, media_type: str) -> bytes:
    """An error after which the connection is closed. Those that come before any handler are text, and end with the
    connection. upstream: net/http server.go#serve"""
    length = "" if body and media_type == _TEXT else f"Content-Length: {len(body)}\r\n"
    kind = f"Content-Type: {media_type}\r\n" if body else ""
    return f"HTTP/1.1 {status}\r\n{kind}Connection: close\r\n{length}\r\n".encode() + body


async def _unopened(request: Received) -> Response:
    raise AssertionError("a request before its connection is made")
