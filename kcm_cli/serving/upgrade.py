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
    """A response 101. ``serve``: uses the other protocol, and returns when the connection is to be closed. drop: called
    instead if the client has gone."""

    serve: Callable[[Duplex], Awaitable[None]]
    drop: Callable[[], None]


def upgraded(
    headers: Mapping[str, str], serve: Callable[[Duplex], Awaitable[None]], drop: Callable[[], None] = lambda: None
) -> Upgraded:
    """A response 101 with these headers."""
    return Upgraded(101, headers, _nothing(), serve, drop)


async def _nothing() -> AsyncIterator[bytes]:
    """The empty body, for callers that ignore the status."""
    empty: tuple[bytes, ...] = ()
    for chunk in empty:
        yield chunk
