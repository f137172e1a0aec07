"""A connection that switches to another protocol after its request."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

from kcm_cli.rest.transport import Stream


class Duplex(Protocol):
    """Bytes in both directions."""

    async def read(self) -> bytes:
        """The next bytes; empty when the client has closed."""

    def write(self, data: bytes) -> None:
        """Send."""

    async def drained(self) -> None:
        """Wait while too much is unsent, since the client reads slowly."""


class Upgraded(Stream, frozen=True):
    """A response 101. ``serve``: uses the other protocol, and returns when the connection is to be closed. If it is not
    called, the answer has to be discarded (``discard``)."""

    serve: Callable[[Duplex], Awaitable[None]]


def upgraded(
    headers: Mapping[str, str], serve: Callable[[Duplex], Awaitable[None]], drop: Callable[[], None] = lambda: None
) -> Upgraded:
    """A response 101 with these headers. drop: called if the answer is discarded."""
    return Upgraded(101, headers, _Nothing(drop), serve)


class _Nothing(AsyncIterator[bytes]):
    """The empty body, for callers that ignore the status."""

    def __init__(self, drop: Callable[[], None]) -> None:
        self._drop = drop

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """The answer is not used."""
        self._drop()
