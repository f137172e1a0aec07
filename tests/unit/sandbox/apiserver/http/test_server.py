"""How requests and answers of the sandbox's port are read and written. The connection: tests/unit/serving."""

import asyncio
import gzip

import msgspec

from kcm_cli.sandbox.apiserver.http.server import HttpServer
from tests.unit.serving.test_connection import Echo, answer, run


def test_invalid_parameters_are_ignored() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: HttpServer, __: Echo) -> None:
        writer.write(b"GET /x?a=1;b=2&c=%zz&d=%20;&e=%41 HTTP/1.1\r\nhost: a\r\n\r\n")
        assert msgspec.json.decode((await answer(reader))[2])["query"] == [["e", "A"]]

    run(talk)


def test_large_responses_are_compressed_if_accepted() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: HttpServer, __: Echo) -> None:
        writer.write(
            b"GET /big HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\nGET /big HTTP/1.1\r\nhost: a\r\n\r\n"
        )
        _status, headers, body = await answer(reader)
        assert "Content-Encoding: gzip" in headers
        assert gzip.decompress(body) == b"x" * 200_000
        assert (await answer(reader))[2] == b"x" * 200_000

    run(talk)
