"""Sends requests to an API server in the same process, without sockets and encoding, so that it also works on virtual
time.

Simulated nodes, the scheduler, the manager and tests use it, each as their own user. Such a request waits for nothing,
so a sequence of thousands would block the loop without ``Turns``.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

from kcm_cli.component.clock import RealClock
from kcm_cli.rest.transport import ConnectionLost, Request, Response, Stream, TransportError, Unreachable
from kcm_cli.sandbox.apiserver.server import ApiServer
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.serving.connection import Dropped

TURN_S = 0.005


class Turns:
    """Yields to other tasks before a request if the present turn of the loop has taken TURN_S.

    This depends on real time, so it is not used where runs on virtual time have to be reproducible. ``now``: seconds.
    """

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or RealClock().monotonic
        self._began: float | None = None

    async def share(self) -> None:
        """Return in this turn, or in the next one if this one has taken long."""
        if self._began is None:
            self._began = self._now()
            asyncio.get_running_loop().call_soon(self._over)
        elif self._now() - self._began >= TURN_S:
            await asyncio.sleep(0)

    def _over(self) -> None:
        self._began = None


class InProcessTransport:
    """Implements ``rest.transport.Transport`` as one user of one server, on that server's loop.

    user: one, or a function that returns that of a request. token: a bearer token, which determines the user as over a
    socket. turns: shared by all on the loop.
    """

    local = True

    def __init__(
        self,
        server: ApiServer,
        user: User | Callable[[], User] | None = None,
        *,
        token: str = "",
        turns: Turns | None = None,
    ) -> None:
        self._server = server
        self._user = user
        self._token = token
        self._turns = turns
        self._closed = False

    async def send(self, request: Request) -> Response:
        """Raises TransportError after ``close``."""
        answer = await self._ask(request)
        if isinstance(answer, Response):
            return Response(answer.status, _plain(answer.headers), answer.body)
        chunks: Any = answer.chunks
        async with aclosing(chunks):
            body = b"".join([chunk async for chunk in chunks])
        return Response(answer.status, _plain(answer.headers), body)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Open a watch. Raises TransportError."""
        return self._opened(request)

    async def close(self) -> None:
        """Refuse further requests."""
        self._closed = True

    @asynccontextmanager
    async def _opened(self, request: Request) -> AsyncIterator[Stream]:
        answer = await self._ask(request)
        if isinstance(answer, Response):
            yield Stream(answer.status, _plain(answer.headers), _once(answer.body))
            return
        chunks: Any = answer.chunks
        async with aclosing(chunks):
            yield Stream(answer.status, _plain(answer.headers), self._until_closed(chunks))

    async def _until_closed(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for chunk in chunks:
                if self._closed:
                    raise TransportError("the transport is closed")
                yield chunk
        except Dropped as error:
            raise ConnectionLost(str(error)) from None

    async def _ask(self, request: Request) -> Response | Stream:
        if self._turns is not None:
            await self._turns.share()
        if self._closed:
            raise TransportError("the transport is closed")
        if request.permitted is not None and not request.permitted():
            raise Unreachable(f"{request.method} {request.path}: not sent, it is not permitted any more")
        try:
            if self._user is not None:
                user = self._user if isinstance(self._user, User) else self._user()
                return await self._server.handle_as(user, request)
            headers = {**request.headers, "authorization": f"Bearer {self._token}"} if self._token else request.headers
            return await self._server.handle(
                Request(request.method, request.path, request.query, headers, request.body, request.timeout_s)
            )
        except Dropped as error:
            lost = f"{request.method} {request.path}: {error}"
            raise (ConnectionLost(lost) if error.effect else Unreachable(lost)) from None


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _plain(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers with several values of one name joined."""
    for value in headers.values():
        if "\n" in value:
            return {name: value.replace("\n", ", ") for name, value in headers.items()}
    return headers
