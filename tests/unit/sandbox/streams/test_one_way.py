"""Responses over WebSockets, and clients that violate the protocol."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.streams import websocket
from kcm_cli.sandbox.streams.one_way import events_over_websocket, over_websocket
from kcm_cli.serving.upgrade import Upgraded
from tests.kit.growth import grows_linearly
from tests.kit.streams import masked

pytestmark = pytest.mark.real_time


class Client:
    """Sends what it is given. It reads ``reads`` times, and then waits forever."""

    def __init__(self, *sent: bytes, reads: int = 100) -> None:
        self._sent, self._reads = list(sent), reads
        self.heard = 0
        self.written = b""

    async def read(self) -> bytes:
        return self._sent.pop(0) if self._sent else await asyncio.Future()

    def write(self, data: bytes) -> None:
        self.heard += len(data)
        self.written += data

    async def drained(self) -> None:
        self._reads -= 1
        await (asyncio.Future() if self._reads < 0 else asyncio.sleep(0))


async def test_a_protocol_violation_ends_the_response() -> None:
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


async def test_an_error_of_the_response_is_raised() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"a"
        raise LookupError

    with pytest.raises(LookupError):
        await over_websocket({}, "", Stream(200, {}, chunks())).serve(Client())


async def test_a_client_that_reads_no_answers_to_its_pings_is_not_read() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        await asyncio.Future()
        yield b""

    client = Client(*[masked(9, b"ping")] * 1000, reads=10)
    serving = asyncio.ensure_future(over_websocket({}, "", Stream(200, {}, chunks())).serve(client))
    await asyncio.sleep(0.05)
    assert client.heard < 100
    serving.cancel()
    await asyncio.wait([serving])


HANDSHAKE = {"sec-websocket-key": "a", "sec-websocket-version": "13", "origin": "https://localhost"}


@pytest.mark.parametrize(
    ("chunk", "binary", "events"),
    [
        (b'{"a":1}\n{"b":2}\n', False, [b'\x81\x08{"a":1}\n', b'\x81\x08{"b":2}\n']),
        (b"\0\0\0\2ab\0\0\0\1c", True, [b"\x82\x02ab", b"\x82\x01c"]),
    ],
    ids=["JSON", "protobuf"],
)
async def test_a_watch_is_one_message_for_each_event(chunk: bytes, binary: bool, events: list[bytes]) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield chunk

    client = Client()
    answer = events_over_websocket(HANDSHAKE, Stream(200, {}, chunks()), binary=binary)
    assert isinstance(answer, Upgraded)
    await answer.serve(client)
    assert client.written == b"".join([*events, websocket.close()])


def test_many_events_take_linear_time() -> None:
    def served(count: int) -> Callable[[], None]:
        async def chunks() -> AsyncIterator[bytes]:
            yield (b"\0\0\0\x7d" + b"a" * 125) * count

        async def main() -> None:
            client = Client()
            answer = events_over_websocket(HANDSHAKE, Stream(200, {}, chunks()), binary=True)
            assert isinstance(answer, Upgraded)
            await answer.serve(client)
            assert len(client.written) == count * 127 + len(websocket.close())

        return lambda: asyncio.run(main())

    assert grows_linearly(served, 2000)


@pytest.mark.parametrize(
    ("headers", "status", "body"),
    [
        ({"sec-websocket-key": ""}, 400, b"mismatch challenge/response"),
        ({"sec-websocket-version": "8"}, 400, b"missing or bad WebSocket Version"),
        ({"origin": ""}, 403, b""),
        ({"origin": "null"}, 403, b""),
        ({"sec-websocket-protocol": "a, b"}, 400, b""),
    ],
    ids=["key", "version", "no origin", "null", "protocols"],
)
def test_handshakes_that_are_refused(headers: dict[str, str], status: int, body: bytes) -> None:
    found = websocket.refusal(HANDSHAKE | headers)
    assert isinstance(found, Response)
    assert (found.status, found.body) == (status, body)


def test_the_only_protocol_is_taken() -> None:
    assert websocket.refusal(HANDSHAKE | {"sec-websocket-protocol": "odd"}) is None


WITH_TOKEN = {"upgrade": "websocket", "connection": "Upgrade"}
TOKEN = "base64url.bearer.authorization.k8s.io.YWRtaW4"


def test_a_token_among_the_protocols() -> None:
    assert websocket.bearer({**WITH_TOKEN, "sec-websocket-protocol": f"{TOKEN}, b.k8s.io"}) == ("admin", "b.k8s.io")
    assert websocket.bearer({"sec-websocket-protocol": f"{TOKEN}, b.k8s.io"}) is None, "no WebSocket"
    assert websocket.bearer({**WITH_TOKEN, "sec-websocket-protocol": "b.k8s.io"}) is None


@pytest.mark.parametrize("offered", [TOKEN, f"{TOKEN}, {TOKEN}, b", f"{TOKEN}=, b", f"{TOKEN}!, b"])
def test_tokens_that_are_refused(offered: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        websocket.bearer({**WITH_TOKEN, "sec-websocket-protocol": offered})
