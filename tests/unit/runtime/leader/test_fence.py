import asyncio

import pytest

from kcm_cli.rest.transport import Request, Response, Unreachable
from kcm_cli.runtime.leader.fence import Fenced


class Sink:
    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, request: Request) -> Response:
        self.sent.append(request.method)
        return Response(200, {}, b"")


def test_only_reads_pass_a_closed_fence() -> None:
    async def main() -> None:
        sink, open_ = Sink(), [False]
        fenced = Fenced(sink, lambda: open_[0])  # type: ignore[arg-type]  # send suffices here
        await fenced.send(Request("GET", "/x"))
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            with pytest.raises(Unreachable, match="lease"):
                await fenced.send(Request(method, "/x"))
        open_[0] = True
        await fenced.send(Request("POST", "/x"))
        assert sink.sent == ["GET", "POST"]

    asyncio.run(main())
