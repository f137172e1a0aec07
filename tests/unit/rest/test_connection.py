"""A connection whose transport has ended and has not said so yet."""

import asyncio

import pytest

from kcm_cli.rest.connection import Connection, Lost


class Ended(asyncio.Transport):
    """uvloop's, between its end and ``connection_lost``."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        raise RuntimeError("unable to perform operation; the handler is closed")

    def abort(self) -> None:
        return None


def test_a_request_on_it_is_lost() -> None:
    async def main() -> None:
        connection = Connection()
        connection.connection_made(Ended())
        with pytest.raises(Lost) as raised:
            await connection.ask(b"GET / HTTP/1.1\r\n\r\n")
        assert not raised.value.answered
        assert not connection.free

    asyncio.run(main())
