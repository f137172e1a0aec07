"""Refuses writes of a process that may no longer lead.

A process that was stopped (SIGSTOP, a suspended machine) resumes in the middle of its work, before its elector notices
that another process leads. Every write checks the fence first, and again after it has waited for a connection.

Not guaranteed: a request that was sent before the lease ended still arrives.
"""

from collections.abc import Callable

from msgspec.structs import replace

from kcm_cli.rest.transport import Around, Request, Response, Transport, Unreachable, is_local

_READS = frozenset(("GET", "HEAD", "OPTIONS"))


class Fenced(Around):
    """A transport whose writes fail while ``safe`` returns False. TokenReviews and token requests are writes, too."""

    def __init__(self, transport: Transport, safe: Callable[[], bool]) -> None:
        super().__init__(transport)
        self.local = is_local(transport)
        self._safe = safe

    async def send(self, request: Request) -> Response:
        """Raises TransportError, Unreachable where the fence is closed: nothing was sent."""
        if request.method in _READS:
            return await self._inner.send(request)
        if not self._safe():
            raise Unreachable(f"{request.method} {request.path}: not sent, the leader lease has run out")
        return await self._inner.send(replace(request, permitted=self._safe))
