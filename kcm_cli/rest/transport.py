"""The interface of transports, which send one request and return its answer.

A session (TLS), the in-process sandbox and a transport that injects faults implement ``Transport``.

RequestError              a request failed
├── errors.ApiError       the server refused it
└── TransportError        no answer came
    ├── Unreachable       no connection: refused, no route, unknown host. The server did not get the request
    │   └── Untrusted     the TLS handshake failed: a certificate was not accepted by the other side
    ├── ConnectionLost    the connection broke. The request may have taken effect
    ├── TimedOut          no answer in time. The request may have taken effect
    └── Unreadable        the answer cannot be read. The request may have taken effect
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

NO_HEADERS: Mapping[str, str] = {}
BLANK = b" \t"
"""What may surround the value of a header; httptools leaves it at the end."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """An HTTP request to an API server. Header names are lower case; the path carries no query.

    permitted: called right before the request is sent, by transports in which requests wait; None for no check. kind,
    reason, owner: of a write, for logs; they are not sent. reason: why it was decided, in a few words. owner: kind and
    key of the object that it is done for, if not the one that is being synced. sent_query: the query as a client of a
    server has sent it; None if it is not known. address: the client's, as a server sees it; empty within a process.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: NO_HEADERS)
    body: bytes = b""
    timeout_s: float | None = None
    permitted: Callable[[], bool] | None = None
    kind: str = ""
    reason: str = ""
    owner: str = ""
    sent_query: str | None = None
    address: str = ""


class Response(msgspec.Struct, frozen=True, gc=False):
    """A whole answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(msgspec.Struct, frozen=True):
    """An answer whose body arrives in chunks of any size, until the server closes it."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


async def discard(answer: Response | Stream) -> None:
    """Release what belongs to an answer that nobody will read, such as the connection that its body comes from."""
    if isinstance(answer, Stream):
        chunks: Any = answer.chunks
        await chunks.aclose()


class RequestError(Exception):
    """A request failed: refused (``errors.ApiError``) or without an answer (``TransportError``)."""


class TransportError(RequestError):
    """There is no answer: connection refused, reset, timed out, or the certificate was not trusted.

    Unless it is Unreachable, the request may have taken effect.
    """


class Unreachable(TransportError):
    """There is no connection, so the server did not get the request."""


class Untrusted(Unreachable):
    """The TLS handshake failed: wrong CA, wrong name, expired or refused certificate."""


class ConnectionLost(TransportError):
    """The connection broke before the whole answer was there."""


class TimedOut(TransportError):
    """The answer did not come in time."""


class Unreadable(TransportError):
    """A successful answer that is not what was requested: no JSON, cut off, not UTF-8, another shape or object.

    Retry it like a lost answer: a proxy may have corrupted it.
    """


class Transport(Protocol):
    """Sends requests to one API server as one user."""

    async def send(self, request: Request) -> Response:
        """Raises TransportError."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Open a watch (or another endless answer). Raises TransportError, on entry or while iterating."""

    async def close(self) -> None:
        """Close all connections."""


class Around:
    """A transport around another one, which passes on what its subclasses leave alone. It is not local, since what is
    in between may delay or break a watch."""

    local = False

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def is_local(transport: Transport) -> bool:
    """Whether the API server is in this process: a watch may stay open for long, and needs no bookmarks. Such a
    transport has an attribute ``local``."""
    return bool(getattr(transport, "local", False))
