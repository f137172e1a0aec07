"""A connection that goes on in another protocol after its request."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

from kcm_cli.rest.transport import Stream


class Duplex(Protocol):
    """Bytes in both directions."""

    async def read(self) -> bytes:
        """What has come; empty when nothing will any more."""

    def write(self, data: bytes) -> None:
        """Send."""

    async def drained(self) -> None:
        """Wait while the other side is slow to read."""


class Upgraded(Stream, frozen=True):
    """An answer 101. ``serve``: speaks the other protocol until the connection is to be closed."""

    serve: Callable[[Duplex], Awaitable[None]]


def upgraded(headers: Mapping[str, str], serve: Callable[[Duplex], Awaitable[None]]) -> Upgraded:
    """An answer with these headers, and the connection."""
    return Upgraded(101, headers, _nothing(), serve)


async def _nothing() -> AsyncIterator[bytes]:
    """The body, for who takes no notice of the status."""
    empty: tuple[bytes, ...] = ()
    for chunk in empty:
        yield chunk
