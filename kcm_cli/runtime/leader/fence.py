"""Refuses writes of a process that may no longer lead.

A process that was stopped (SIGSTOP, a suspended machine) resumes in the middle of its work, before its elector notices
that another process leads. Every write checks the fence first, and again after it has waited for a connection.

Not guaranteed: a request that was sent before the lease ended still arrives.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from kcm_cli.rest.transport import Request, Response, Stream, Transport, Unreachable, is_local

_READS = frozenset(("GET", "HEAD", "OPTIONS"))


class Fenced:
    """A transport whose writes fail while ``safe`` returns False. TokenReviews and token requests are writes, too."""

    def __init__(self, transport: Transport, safe: Callable[[], bool]) -> None:
        self.local = is_local(transport)
        self._transport = transport
        self._safe = safe

    async def send(self, request: Request) -> Response:
        """Raises TransportError, Unreachable where the fence is closed: nothing was sent."""
        if request.method in _READS:
            return await self._transport.send(request)
        if not self._safe():
            raise Unreachable(f"{request.method} {request.path}: not sent, the leader lease has run out")
        return await self._transport.send(replace(request, permitted=self._safe))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """As the transport does."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()
