"""Proxied requests and the cluster's time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import pytest

from kcm_cli.rest.transport import Request, Response, Stream, discard
from kcm_cli.sandbox.apiserver.kinds.core import proxying
from kcm_cli.sandbox.apiserver.types import ApiError

pytestmark = pytest.mark.real_time
REQUEST = Request("GET", "/proxy/a", headers={"host": "a"})
UPGRADE = Request("GET", "/proxy/a", headers={"host": "a", "connection": "upgrade", "upgrade": "x"})


class Held:
    """How often time is held now, and whether it has been let go since it was held last."""

    def __init__(self) -> None:
        self.count = 0
        self.ended = asyncio.Event()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.count += 1
        self.ended.clear()
        try:
            yield
        finally:
            self.count -= 1
            self.ended.set()


class Server:
    """Notes whether time is held when a request has come, and when its client has gone; if ``late``, it answers when
    time is no longer held."""

    def __init__(self, held: Held) -> None:
        self.late = False
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        self.left = asyncio.Event()
        self.seen: list[int] = []
        self._held = held

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.seen.append(self._held.count)
        if self.late:
            await self._held.ended.wait()
        writer.write(self.answer)
        with suppress(ConnectionError):
            await reader.read()
        self.left.set()
        writer.close()


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Server, proxying.Where]]:
    held = Held()
    monkeypatch.setattr(asyncio.get_running_loop(), "hold", held, raising=False)
    monkeypatch.setattr(proxying, "_HELD_S", 600.0)
    answers = Server(held)
    async with await asyncio.start_server(answers, "127.0.0.1", 0) as listening:
        host, port = listening.sockets[0].getsockname()
        yield answers, (host, port)


async def test_time_does_not_jump_until_a_server_has_answered(server: tuple[Server, proxying.Where]) -> None:
    answers, where = server
    found = await proxying.passed_on(proxying.Proxied(REQUEST, "/proxy", "/a"), where, secure=False)
    assert isinstance(found, Response) and found.body == b"ok"
    with pytest.raises(ApiError, match="status code 200"):
        await proxying.passed_on(proxying.Proxied(UPGRADE, "/proxy", "/a"), where, secure=False)
    assert answers.seen == [1, 1]


async def test_time_goes_on_where_a_server_waits_for_it(
    server: tuple[Server, proxying.Where], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, where = server
    monkeypatch.setattr(proxying, "_HELD_S", 0.0)
    answers.late = True
    found = await proxying.passed_on(proxying.Proxied(REQUEST, "/proxy", "/a"), where, secure=False)
    assert isinstance(found, Response) and found.body == b"ok"


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (REQUEST, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (UPGRADE, b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
    ],
    ids=["stream", "upgrade"],
)
async def test_an_answer_that_nobody_reads_ends_its_connection(
    server: tuple[Server, proxying.Where], request_: Request, answer: bytes
) -> None:
    answers, where = server
    answers.answer = answer
    found = await proxying.passed_on(proxying.Proxied(request_, "/proxy", "/a"), where, secure=False)
    assert isinstance(found, Stream)
    await discard(found)
    await asyncio.wait_for(answers.left.wait(), 10)
