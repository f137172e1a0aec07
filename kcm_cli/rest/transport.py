"""One request, one answer: the seam between what is asked and how it travels.

A real session (TLS), the in-process sandbox and a transport that injects faults are equals behind
``Transport``.

RequestError              a request failed
├── errors.ApiError       the server refused it
└── TransportError        no answer came
    ├── Unreachable       no connection: refused, no route, unknown host. The server saw nothing
    │   └── Untrusted     the server's certificate (or its answer to ours) did not verify
    ├── ConnectionLost    broken half way. The request may have taken effect
    ├── TimedOut          no answer in time. The request may have taken effect
    └── Unreadable        an answer came that cannot be read. The request may have taken effect
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

NO_HEADERS: Mapping[str, str] = {}


class Request(msgspec.Struct, frozen=True, gc=False):
    """An HTTP request to an API server. Header names are lower case; the path carries no query.

    permitted: asked right before it is sent, by a transport in which requests wait; None: it may be.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: NO_HEADERS)
    body: bytes = b""
    timeout_s: float | None = None
    permitted: Callable[[], bool] | None = None


class Response(msgspec.Struct, frozen=True, gc=False):
    """A whole answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(msgspec.Struct, frozen=True):
    """An answer whose body arrives bit by bit; ends when the server closes it. Chunks are cut anywhere."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class RequestError(Exception):
    """A request failed: refused (``errors.ApiError``) or without an answer (``TransportError``)."""


class TransportError(RequestError):
    """No answer came: connection refused, reset, timed out, or the certificate was not trusted.

    Unless it is Unreachable, the request may have taken effect all the same.
    """


class Unreachable(TransportError):
    """There is no connection, so the server saw nothing of the request."""


class Untrusted(Unreachable):
    """The TLS handshake failed: wrong CA, wrong name, expired or refused certificate."""


class ConnectionLost(TransportError):
    """The connection broke before the whole answer was there."""


class TimedOut(TransportError):
    """The answer did not come in time."""


class Unreadable(TransportError):
    """An answer of success that is not what was asked for: no JSON, cut, invalid UTF-8, of another shape or object.

    To be retried like a lost answer: what a proxy spoils once may pass the next time.
    """


class Transport(Protocol):
    """Sends requests to one API server as one user."""

    async def send(self, request: Request) -> Response:
        """Raises TransportError."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Open a watch (or another endless answer). Raises TransportError, on entry or while iterating."""

    async def close(self) -> None:
        """Give up all connections."""
