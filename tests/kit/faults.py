"""Transports that answer by themselves, or with configurable failures."""

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from kcm_cli.component.clock import Clock, LoopClock
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Around, ConnectionLost, Request, Response, Stream, Transport, TransportError


class Answering:
    """A transport whose ``send`` is a subclass's. A watch brings what that answers, line by line."""

    async def send(self, request: Request) -> Response:
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        answer = await self.send(request)
        yield Stream(answer.status, answer.headers, chunks(*answer.body.splitlines(keepends=True)))

    async def close(self) -> None: ...

    def client(self, clock: Clock | None = None) -> Client:
        """A client of it, without a limit."""
        return Client(self, limiter=Unlimited(), user_agent="t", clock=clock or LoopClock())


class Refusing(Around):
    """Fails the requests for which ``refuses`` is true, before they are sent; ``before`` is awaited first for each."""

    def __init__(
        self,
        inner: Transport,
        refuses: Callable[[Request], bool],
        before: Callable[[Request], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(inner)
        self._refuses = refuses
        self._before = before
        self.refused = 0

    async def send(self, request: Request) -> Response:
        if self._before is not None:
            await self._before(request)
        if self._refuses(request):
            self.refused += 1
            raise TransportError("the connection was lost")
        return await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        if self._refuses(request):
            self.refused += 1
            raise TransportError("the connection was lost")
        async with self._inner.stream(request) as stream:
            yield stream


class Meanwhile(Around):
    """Something happens once, before the first request is sent that has this method, end of its path, and text in its
    body."""

    def __init__(
        self, inner: Transport, method: str, end: str, happens: Callable[[], Awaitable[object]], text: bytes = b""
    ) -> None:
        super().__init__(inner)
        self._wanted = method, end, text
        self._happens = happens
        self.happened = False

    async def send(self, request: Request) -> Response:
        method, end, text = self._wanted
        if not self.happened and request.method == method and request.path.endswith(end) and text in request.body:
            self.happened = True
            await self._happens()
        return await self._inner.send(request)


class Noting(Around):
    """Keeps the requests that are sent, and those for watches."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.sent: list[Request] = []

    def paths(self, *methods: str) -> list[str]:
        """Of the requests with one of these methods."""
        return [one.path for one in self.sent if one.method in methods]

    def written(self) -> list[Request]:
        """Those that change something, but for Events."""
        return [one for one in self.sent if one.method != "GET" and "/events" not in one.path]

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        self.sent.append(request)
        return self._inner.stream(request)


class Rewriting(Around):
    """Gives answers as ``edit`` changes them; what ``answer`` answers never gets there."""

    def __init__(
        self,
        inner: Transport,
        edit: Callable[[Request, Response], Response] = lambda request, response: response,
        answer: Callable[[Request], Response | None] = lambda request: None,
    ) -> None:
        super().__init__(inner)
        self._edit = edit
        self._answer = answer

    async def send(self, request: Request) -> Response:
        return self._answer(request) or self._edit(request, await self._inner.send(request))


class Held(Around):
    """Holds back what watches of a path bring, from ``hold`` on or from a request that ``since`` says yes to, until
    ``release``."""

    def __init__(
        self, inner: Transport, clock: Clock, path: str, since: Callable[[Request], bool] = lambda request: False
    ) -> None:
        super().__init__(inner)
        self._clock = clock
        self._path = path
        self._since = since
        self._holding = self._over = False

    def hold(self) -> None:
        self._holding = True

    def release(self) -> None:
        self._holding, self._over = False, True

    async def send(self, request: Request) -> Response:
        self._holding = self._holding or (not self._over and self._since(request))
        return await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            chunks = self._held(stream.chunks) if request.path == self._path else stream.chunks
            yield Stream(stream.status, stream.headers, chunks)

    async def _held(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            while self._holding:
                await self._clock.sleep(0.1)
            yield chunk


class Late(Around):
    """News come up to three seconds late, each kind's at its own pace; of each third write the answer is lost, or the
    write itself. ``steady`` ends that."""

    def __init__(self, inner: Transport, clock: Clock, rng: random.Random) -> None:
        super().__init__(inner)
        self._clock, self._rng = clock, rng
        self._steady = False
        self.faults = 0

    def steady(self) -> None:
        self._steady = True

    async def send(self, request: Request) -> Response:
        fails = request.method != "GET" and not self._steady and self._rng.random() < 0.3
        if fails and self._rng.random() < 0.3:
            self.faults += 1
            raise ConnectionLost("broken on the way there")
        response = await self._inner.send(request)
        if fails:
            self.faults += 1
            raise ConnectionLost("broken on the way back")
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            yield Stream(stream.status, stream.headers, self._late(stream.chunks))

    async def _late(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if not self._steady:
                await self._clock.sleep(self._rng.choice((0.0, 0.05, 3.0)))
            yield chunk


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    """The body of a stream."""
    for part in parts:
        yield part


def refusal(status: int, reason: str, message: str = "no", causes: Iterable[dict[str, str]] = ()) -> Response:
    """An error response of an API server."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason}
    body["details"] = {"causes": list(causes)}
    return Response(status, {"content-type": "application/json"}, json.dumps(body | {"message": message}).encode())
