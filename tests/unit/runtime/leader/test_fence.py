from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kcm_cli.rest.transport import Request, Response, Stream, Unreachable
from kcm_cli.runtime.leader.fence import Fenced

pytestmark = pytest.mark.real_time


class Sink:
    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, request: Request) -> Response:
        self.sent.append(request.method)
        return Response(200, {}, b"")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"chunk"

        yield Stream(200, {}, chunks())

    async def close(self) -> None:
        self.sent.append("closed")


async def test_only_reads_pass_a_closed_fence() -> None:
    sink, open_ = Sink(), [False]
    fenced = Fenced(sink, lambda: open_[0])
    await fenced.send(Request("GET", "/x"))
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(Unreachable, match="lease"):
            await fenced.send(Request(method, "/x"))
    open_[0] = True
    await fenced.send(Request("POST", "/x"))
    assert sink.sent == ["GET", "POST"]


async def test_a_watch_continues_behind_a_closed_fence() -> None:
    sink = Sink()
    fenced = Fenced(sink, lambda: False)
    async with fenced.stream(Request("GET", "/x")) as stream:
        assert [chunk async for chunk in stream.chunks] == [b"chunk"]
    await fenced.close()
    assert sink.sent == ["closed"]
