"""The network transport: keep-alive connections to one API server over TLS.

Watches and requests have separate connections, so that they cannot starve each other. With aiohttp a request took 40 µs
of CPU more, and the process 13 MiB.

Guarantees: PUT, DELETE and GET are sent again where a reused connection turns out to be closed. New connections use
changed certificate files within a minute. A dead peer is detected within a minute. Not guaranteed: that a POST or PATCH
whose connection broke had no effect.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kcm_cli.component.clock import Clock
from kcm_cli.rest.access import Access
from kcm_cli.rest.connection import Connection, Incoming, Lost
from kcm_cli.rest.connection_errors import ASKING, DIALING, broken, unreachable
from kcm_cli.rest.dialing import Dialer
from kcm_cli.rest.encoding import Encoder
from kcm_cli.rest.in_flight import Slots
from kcm_cli.rest.metrics import NO_SESSION_METRICS, SessionMetrics
from kcm_cli.rest.pool import Pool
from kcm_cli.rest.tls import ReloadedContext
from kcm_cli.rest.transport import ConnectionLost, Request, Response, Stream, Unreachable

CONNECTIONS = 32
"""At 5,000 requests a second these suffice for answers that take 6 ms; for slower ones they become more."""
MOST_CONNECTIONS = 256
CONNECT_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 70.0
"""An API server gives up on a request after 60 s; after this the connection is dead."""
_AGAIN = frozenset({"GET", "PUT", "DELETE"})


class Session:
    """A ``Transport`` over connections to one server with one TLS identity. Made and used within a running loop.

    Sends no Authorization header of its own: see ``authorized``. Raises TLSFilesError where a certificate file
    cannot be used.
    """

    def __init__(
        self,
        access: Access,
        clock: Clock,
        metrics: SessionMetrics = NO_SESSION_METRICS,
        *,
        connections: int = CONNECTIONS,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.access = access
        self._ssl = ReloadedContext(access.tls, clock, metrics, access.certificate) if access.tls is not None else None
        self._slots = Slots(min(connections, most_connections), most_connections, clock)
        self._dialer = Dialer(access, clock, metrics)
        self._encoder = Encoder(access)
        self._requests = Pool(clock)
        self._watches = Pool(clock)

    async def send(self, request: Request) -> Response:
        """Raises TransportError."""
        if not self._slots.take():
            await self._turn(request)
        try:
            return await self._exchange(request, _end(request))
        except ASKING as error:
            raise broken(self._what(request), error) from error
        finally:
            self._slots.give_back()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Raises TransportError on entry and while iterating. The request's timeout ends when its answer begins."""
        what = self._what(request)
        try:
            async with asyncio.timeout(request.timeout_s or REQUEST_TIMEOUT_S):
                connection, incoming = await self._opened(request)
        except ASKING as error:
            raise broken(what, error) from error
        try:
            yield Stream(incoming.status, incoming.headers, _chunks(incoming, what))
        finally:
            self._watches.give_back(connection)

    async def close(self) -> None:
        """Close all connections."""
        self._requests.close()
        self._watches.close()

    async def _exchange(self, request: Request, until: float) -> Response:
        data, sent = self._encoder.encode(request), False
        while True:
            try:
                connection = await self._connection(self._requests, request, until)
            except Unreachable as error:
                if sent:  # the server may have carried it out, and ended before it answered
                    raise ConnectionLost(str(error)) from error
                raise
            try:
                if request.permitted is not None and not request.permitted():
                    failure = ConnectionLost if sent else Unreachable
                    raise failure(f"{self._what(request)}: not sent, it is not permitted any more")
                sent = True
                return await connection.ask(data, until=until)
            except Lost as error:
                if not _again(connection, request, error):
                    raise
            finally:
                self._requests.give_back(connection)

    async def _opened(self, request: Request) -> tuple[Connection, Incoming]:
        data = self._encoder.encode(request)
        while True:
            connection = await self._connection(self._watches, request, _end(request))
            try:
                return connection, await connection.open(data)
            except BaseException as error:
                self._watches.give_back(connection)
                if not isinstance(error, Lost) or not _again(connection, request, error):
                    raise

    async def _connection(self, pool: Pool, request: Request, until: float) -> Connection:
        context = self._ssl.current() if self._ssl is not None else None
        kept = pool.take(context)
        if kept is not None:
            return kept
        limit_s = max(0.0, min(CONNECT_TIMEOUT_S, until - asyncio.get_running_loop().time()))
        try:
            async with asyncio.timeout(limit_s):
                return pool.adopt(await self._dialer.dial(context), context)
        except DIALING as error:
            raise unreachable(self._what(request), error, limit_s) from error

    async def _turn(self, request: Request) -> None:
        """Wait for a slot. Raises Unreachable when the request times out before it is sent."""
        try:
            async with asyncio.timeout(request.timeout_s or REQUEST_TIMEOUT_S):
                await self._slots.wait()
        except TimeoutError as error:
            raise Unreachable(f"{self._what(request)}: all connections are busy") from error

    def _what(self, request: Request) -> str:
        return f"{request.method} {self.access.server}{request.path}"


def _end(request: Request) -> float:
    """The deadline of a request that begins now, in the loop's time."""
    return asyncio.get_running_loop().time() + (request.timeout_s or REQUEST_TIMEOUT_S)


async def _chunks(incoming: Incoming, what: str) -> AsyncIterator[bytes]:
    """The body of a stream as it arrives."""
    try:
        while chunk := await incoming.read():
            yield chunk
    except ASKING as error:
        raise broken(what, error) from error


def _again(connection: Connection, request: Request, error: Lost) -> bool:
    """Whether a reused connection turned out to be closed, and the request is safe to repeat."""
    return connection.used and not error.answered and request.method in _AGAIN
