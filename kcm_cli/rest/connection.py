"""One HTTP/1.1 connection of a client, straight on httptools: one request, then its answer, then the next.

Guarantees: a request ends with a whole answer or with Lost. A stream that is not read applies backpressure to its
server. A connection is not reused after an unexpected event. Headers and trailers are bounded.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import cast

import httptools

from kcm_cli.rest.transport import BLANK, Response

MOST_UNREAD = 256 * 1024
"""Bytes of a stream that are taken in before they are read."""
MOST_HEADERS = 1024
MOST_HEAD = 1 << 20
"""The maximum size of a head."""


class Lost(ConnectionError):
    """The connection ended before the answer was complete.

    answered: whether part of the answer had arrived. why: the system's error, None where the server closed it.
    """

    def __init__(self, *, answered: bool, why: Exception | None = None) -> None:
        super().__init__("the server closed the connection")
        self.answered = answered
        self.why = why


class HeadTooLarge(ConnectionError):
    """The headers or trailers of an answer exceed the limit."""

    def __init__(self) -> None:
        super().__init__(f"the headers of the answer are longer than {MOST_HEAD} bytes, or more than {MOST_HEADERS}")


class Headers(Mapping[str, str]):
    """The headers of an answer by their lower-case names. They are decoded when they are first looked at, which is
    seldom."""

    __slots__ = ("_decoded", "fields")

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []
        self._decoded: dict[str, str] | None = None

    @property
    def _all(self) -> dict[str, str]:
        if self._decoded is None:
            decoded: dict[str, str] = {}
            self._decoded = decoded
            for name, value in self.fields:
                key, text = name.decode("latin-1").lower(), value.decode("latin-1")
                decoded[key] = text if key not in decoded else f"{decoded[key]}, {text}"
        return self._decoded

    def __getitem__(self, name: str) -> str:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


class Incoming:
    """An answer whose head has arrived; ``read`` returns the body in pieces."""

    __slots__ = ("_connection", "_failure", "_ready", "_unread", "chunks", "ended", "head", "headers", "status")

    def __init__(self, connection: "Connection", head: asyncio.Future[None]) -> None:
        self.status = 0
        self.headers = Headers()
        self.head = head
        self.chunks: deque[bytes] = deque()
        self.ended = False
        self._unread = 0
        self._failure: Exception | None = None
        self._ready: asyncio.Future[None] | None = None
        self._connection = connection

    @property
    def until_close(self) -> bool:
        """Whether its body ends with the connection."""
        headed = self.status >= 200 and self.status not in (204, 304)
        return headed and "content-length" not in self.headers and "transfer-encoding" not in self.headers

    async def read(self) -> bytes:
        """More of the body; empty at its end. Raises ConnectionError (Lost, HeadTooLarge) or HttpParserError."""
        while not self.chunks:
            if self._failure is not None:
                raise self._failure
            if self.ended:
                return b""
            self._ready = asyncio.get_running_loop().create_future()
            await self._ready
        data = self.chunks.popleft() if len(self.chunks) == 1 else b"".join(self.chunks)
        self.chunks.clear()
        self._unread = 0
        self._connection.resume()
        return data

    def add(self, data: bytes) -> bool:
        """Whether there is room for more."""
        self.chunks.append(data)
        self._unread += len(data)
        self._wake()
        return self._unread <= MOST_UNREAD

    def end(self, failure: Exception | None = None) -> None:
        """The body is complete, or the connection has ended."""
        self.ended, self._failure = failure is None, failure
        if not self.head.done():
            self.head.set_result(None) if failure is None else self.head.set_exception(failure)
        self._wake()

    def _wake(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)


class Connection(asyncio.Protocol):
    """Use ``ask`` for a whole answer or ``open`` for a stream, while ``free``."""

    def __init__(self) -> None:
        self.used = False
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._incoming: Incoming | None = None
        self._whole = False
        self._bodiless = False
        self._keep = True
        self._paused = False
        self._headers = self._without_body = 0
        self._until = math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @property
    def free(self) -> bool:
        """Whether the next request may go here."""
        return self._keep and self._incoming is None and self._transport is not None

    async def ask(self, data: bytes, *, bodiless: bool = False, until: float | None = None) -> Response:
        """Send a request as it goes over the wire; its answer. Raises ConnectionError (Lost, HeadTooLarge),
        HttpParserError or TimeoutError.

        bodiless: the answer has no body, whatever its headers say (CONNECT, HEAD). until: when, by the loop's time, the
        whole answer has to be there.
        """
        incoming = self._send(data, whole=True, bodiless=bodiless)
        try:
            if until is not None:
                self._expire(until)
            await incoming.head
            return Response(incoming.status, incoming.headers, b"".join(incoming.chunks))
        finally:
            del incoming  # it holds the failure, and that one this frame

    async def open(self, data: bytes, *, bodiless: bool = False) -> Incoming:
        """The same for an answer that is read as it comes."""
        incoming = self._send(data, whole=False, bodiless=bodiless)
        try:
            await incoming.head
            return incoming
        finally:
            del incoming  # as above

    def close(self) -> None:
        """Close the connection; a request in flight fails."""
        self._keep = False
        self._forget_timer()
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        """Take in more."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _send(self, data: bytes, *, whole: bool, bodiless: bool = False) -> Incoming:
        if self._transport is None:
            raise Lost(answered=False)
        self._headers = self._without_body = 0
        self._until = math.inf
        self._incoming = incoming = Incoming(self, asyncio.get_running_loop().create_future())
        self._whole, self._bodiless = whole, bodiless
        try:
            self._transport.write(data)
        except RuntimeError as error:  # uvloop's, of one that is closed and has not reported it yet
            self._incoming = None
            self.close()
            raise Lost(answered=False) from error
        return incoming

    def _expire(self, until: float) -> None:
        """Fail the request in flight at its deadline. One timer serves many requests: it is set again when it fires."""
        self._until = until
        if self._timer is not None:
            if self._timer.when() <= until:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(until, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._incoming is None or self._until == math.inf:
            return
        if self._until <= asyncio.get_running_loop().time():
            self._give_up(TimeoutError())
        else:
            self._expire(self._until)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _finish(self, failure: Exception | None = None) -> None:
        incoming, self._incoming = self._incoming, None
        self.used = True
        self.resume()
        if incoming is not None:
            incoming.end(failure)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it

    def data_received(self, data: bytes) -> None:
        if self._incoming is None:
            self.close()  # an answer to nothing: the server gives up an idle connection
            return
        self._without_body += len(data)
        if self._without_body > MOST_HEAD:
            self._give_up(HeadTooLarge())
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            why = error.__context__  # what a callback raised
            self._give_up(why if isinstance(why, HeadTooLarge) else error)

    def _give_up(self, error: Exception) -> None:
        self._finish(error)
        self.close()

    def eof_received(self) -> None:
        self._keep = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport, self._keep = None, False
        self._forget_timer()
        incoming = self._incoming
        if incoming is not None and exc is None and incoming.until_close:
            self._finish()
        elif incoming is not None:
            self._finish(Lost(answered=incoming.status > 0, why=exc))
        del self._parser  # it holds the methods of this object

    # httptools' callbacks

    def on_message_begin(self) -> None:
        if self._incoming is None:  # an answer to nothing, right behind one: its rest may be on the way
            self._keep = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        if self._headers > MOST_HEADERS:
            raise HeadTooLarge
        if self._incoming is not None:
            self._incoming.headers.fields.append((name, value.rstrip(BLANK)))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        incoming = self._incoming
        if incoming is None:
            return
        if status < 200:  # the answer follows
            incoming.headers = Headers()
            return
        incoming.status = status
        if self._bodiless:
            self._parser = httptools.HttpResponseParser(self)
            self._finish()
            return
        if not self._whole:
            incoming.head.set_result(None)

    def on_body(self, body: bytes) -> None:
        self._without_body = 0
        if self._incoming is not None and not self._incoming.add(body) and not self._whole and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._incoming is not None and self._incoming.status:
            self._keep = self._keep and self._parser.should_keep_alive()
            self._finish()
