"""How requests and answers of the sandbox's port are read and written. The connection: tests/unit/serving."""

import gzip

import pytest

from tests.kit.echo import connected

pytestmark = pytest.mark.real_time


async def test_invalid_parameters_are_ignored() -> None:
    async with connected() as client:
        client.send(b"GET /x?a=1;b=2&c=%zz&d=%20;&e=%41 HTTP/1.1\r\nhost: a\r\n\r\n")
        assert (await client.json())["query"] == [["e", "A"]]


async def test_large_responses_are_compressed_if_accepted() -> None:
    async with connected() as client:
        client.send(b"GET /big HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n")
        client.send(b"GET /big HTTP/1.1\r\nhost: a\r\n\r\n")
        _status, headers, body = await client.answer()
        assert "Content-Encoding: gzip" in headers
        assert gzip.decompress(body) == b"x" * 200_000
        assert (await client.answer())[2] == b"x" * 200_000
