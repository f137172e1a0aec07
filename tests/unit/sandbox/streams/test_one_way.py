"""Answers over WebSockets, and clients that are not as they should be."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kcm_cli.rest.transport import Stream
from kcm_cli.sandbox.streams.one_way import over_websocket
from tests.streams import masked


class Client:
    """Sends what it is given. It reads ``reads`` times, and then waits for ever."""

    def __init__(self, *sent: bytes, reads: int = 100) -> None:
        self._sent, self._reads = list(sent), reads
        self.heard = 0

    async def read(self) -> bytes:
        return self._sent.pop(0) if self._sent else await asyncio.Future()

    def write(self, data: bytes) -> None:
        self.heard += len(data)

    async def drained(self) -> None:
        self._reads -= 1
        await (asyncio.Future() if self._reads < 0 else asyncio.sleep(0))


def test_what_is_no_protocol_ends_the_answer() -> None:
    async def main() -> None:
        ended = list[bool]()

        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield b"a"
                await asyncio.Future()
            finally:
                ended.append(True)

        client = Client(b"\x82\x01unmasked")
        await asyncio.wait_for(over_websocket({}, "", Stream(200, {}, chunks())).serve(client), 5)
        assert ended == [True]

    asyncio.run(main())


def test_an_error_in_the_answer_is_told() -> None:
    async def main() -> None:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"a"
            raise LookupError

        with pytest.raises(LookupError):
            await over_websocket({}, "", Stream(200, {}, chunks())).serve(Client())

    asyncio.run(main())


def test_a_client_that_reads_no_answers_to_its_pings_is_not_read() -> None:
    async def main() -> None:
        async def chunks() -> AsyncIterator[bytes]:
            await asyncio.Future()
            yield b""

        client = Client(*[masked(9, b"ping")] * 1000, reads=10)
        serving = asyncio.ensure_future(over_websocket({}, "", Stream(200, {}, chunks())).serve(client))
        await asyncio.sleep(0.05)
        assert client.heard < 100
        serving.cancel()
        await asyncio.wait([serving])

    asyncio.run(main())
