"""Sends requests to an API server in the same process, without sockets and encoding, so that it also works on virtual
time.

Simulated nodes, the scheduler, the manager and tests use it, each as their own user. Such a request waits for nothing,
so thousands of them would hold the loop: they take turns (``runtime.turns``).
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

from kcm_cli.rest.transport import ConnectionLost, Request, Response, Stream, TransportError, Unreachable
from kcm_cli.runtime.turns import Turns
from kcm_cli.sandbox.apiserver.server import ApiServer
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.serving.connection import Dropped


class InProcessTransport:
    """Implements ``rest.transport.Transport`` as one user of one server, on that server's loop.

    user: one, or a function that returns that of a request. token: a bearer token, which determines the user as over a
    socket.
    """

    local = True

    def __init__(
        self,
        server: ApiServer,
        user: User | Callable[[], User] | None = None,
        *,
        token: str = "",
    ) -> None:
        self._server = server
        self._user = user
        self._token = token
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
        await Turns.of_loop().pause()
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
