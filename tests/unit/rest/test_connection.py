"""A connection whose transport is closed without a notification yet; timeouts of requests."""

import asyncio
import gc
import weakref

import pytest

from kcm_cli.rest.connection import Connection, Lost

pytestmark = pytest.mark.real_time


class Ended(asyncio.Transport):
    """uvloop's, between its end and ``connection_lost``."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        raise RuntimeError("unable to perform operation; the handler is closed")

    def abort(self) -> None:
        return None


async def test_a_request_on_a_broken_connection_is_lost() -> None:
    connection = Connection()
    connection.connection_made(Ended())
    with pytest.raises(Lost) as raised:
        await connection.ask(b"GET / HTTP/1.1\r\n\r\n")
    assert not raised.value.answered
    assert not connection.free


class Quick(asyncio.Transport):
    """Answers at once, while it ``answers``."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.answers = True
        self.head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.answers:
            self.connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + self.head + b"\r\n")

    def abort(self) -> None:
        self.connection.connection_lost(None)


def connected() -> tuple[Connection, Quick]:
    connection = Connection()
    transport = Quick(connection)
    connection.connection_made(transport)
    return connection, transport


async def test_blanks_around_a_header_are_not_part_of_it() -> None:
    connection = Connection()
    transport = Quick(connection)
    transport.head = b"Retry-After: \t5 \t\r\n"
    connection.connection_made(transport)
    assert (await connection.ask(b"")).headers["retry-after"] == "5"


async def test_each_request_has_its_timeout_with_one_timer() -> None:
    loop = asyncio.get_running_loop()
    connection, transport = connected()
    for within_s in (100.0, 0.01, 100.0):
        assert (await connection.ask(b"", until=loop.time() + within_s)).status == 200
    transport.answers = False
    asked = asyncio.ensure_future(connection.ask(b"", until=loop.time() + 100.0))
    await asyncio.sleep(0.05)  # the timer of the second is due
    assert not asked.done()
    transport.answers = True
    transport.write(b"")
    assert (await asked).status == 200
    transport.answers = False
    with pytest.raises(TimeoutError):
        await connection.ask(b"", until=loop.time() + 0.01)
    assert not connection.free


async def test_a_request_without_a_timeout_does_not_use_the_former_one() -> None:
    loop = asyncio.get_running_loop()
    connection, transport = connected()
    assert (await connection.ask(b"", until=loop.time() + 0.01)).status == 200
    transport.answers = False
    opened = asyncio.ensure_future(connection.open(b""))
    await asyncio.sleep(0.05)
    assert not opened.done()
    transport.answers = True
    transport.write(b"")
    assert (await opened).status == 200


def test_a_lost_connection_leaves_no_garbage() -> None:
    """Full looks for garbage are seldom, and a manager may lose many connections between two."""

    async def lose(whole: bool) -> tuple["weakref.ref[object]", ...]:
        connection, transport = connected()
        transport.answers = False
        asked = asyncio.ensure_future((connection.ask if whole else connection.open)(b""))
        await asyncio.sleep(0)
        left = tuple(map(weakref.ref, (connection, connection._incoming.head)))  # type: ignore[union-attr]
        transport.abort()
        await asyncio.wait([asked])
        assert isinstance(asked.exception(), Lost)
        return left

    async def main() -> None:
        for whole in (True, False):
            left = await lose(whole)
            assert [one() for one in left] == [None, None]

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "more", ["H", "HTTP/1.1 503 Busy\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
)
@pytest.mark.parametrize("whole", [True, False])
async def test_a_connection_that_begins_an_answer_to_nothing_is_not_reused(more: str, whole: bool) -> None:
    """Its rest would be taken for the next answer, by a broken server or for a proxy's farewell."""
    connection, transport = connected()
    transport.answers = False
    asked = asyncio.ensure_future((connection.ask if whole else connection.open)(b""))
    await asyncio.sleep(0)
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + more.encode())
    assert (await asked).status == 200
    assert not connection.free


async def test_a_connection_is_reused_after_an_interim_answer() -> None:
    connection, transport = connected()
    transport.answers = False
    for _ in range(2):
        asked = asyncio.ensure_future(connection.ask(b""))
        await asyncio.sleep(0)
        connection.data_received(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
        assert (await asked).status == 204
        assert connection.free
