"""Excessive requests to port 10257 get Go's responses, and do not affect other clients."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kcm_cli.manager.server import http
from kcm_cli.serving import connection_limits
from tests.integration.manager.test_server import Running, serving
from tests.kit.processes import insecure

pytestmark = pytest.mark.real_time

HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
Send = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def connected(server: Running, context: ssl.SSLContext | None = None):  # type: ignore[no-untyped-def]
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context or insecure())
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0.01)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes before the server closes. It may also reset: it does where the caller writes on."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def answered(server: Running, *parts: bytes) -> bytes:
    """All bytes until the server closes."""
    async with connected(server) as (reader, writer):
        got = asyncio.create_task(reader.read())
        for part in parts:
            writer.write(part)
            try:
                await writer.drain()
            except ConnectionError:
                break
        try:
            return await got
        except (ConnectionError, ssl.SSLError):
            return b""


REFUSED = {
    "one large header": ([HEAD, b"X: ", *[b"x" * 65536] * 17], b"431 Request Header Fields Too Large"),
    "many headers": ([HEAD, *[b"x: y\r\n" * 4000] * 2, b"\r\n"], b"431 Request Header Fields Too Large"),
    "a large request line": ([b"GET /", *[b"x" * 65536] * 17], b"431 Request Header Fields Too Large"),
    "empty lines": ([b"\r\n" * 32768] * 17, b"431 Request Header Fields Too Large"),
    "no host": ([b"GET /healthz HTTP/1.1\r\n\r\n"], b"400 Bad Request: missing required Host header"),
    "no HTTP": ([b"hello\r\n\r\n"], b"400 Bad Request"),
    "lone newlines": ([b"GET /healthz HTTP/1.1\r\nHost: a\nX: y\n\n"], b"400 Bad Request"),
    "a folded header": ([HEAD + b"X: y\r\n z\r\n\r\n"], b"400 Bad Request"),
    "two lengths": ([HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"], b"400 Bad Request"),
}


async def test_requests_beyond_the_limits_are_refused_as_by_go() -> None:
    """All concurrently, since the server closes after a second."""
    async with serving() as server:
        every = await asyncio.gather(*(answered(server, *parts) for parts, _ in REFUSED.values()))
        for name, (_, status), got in zip(REFUSED, REFUSED.values(), every, strict=True):
            head, _, body = got.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 " + status), name
            assert b"Connection: close" in head, name
            assert body == status, name
        assert (await server.get("/healthz"))[0] == 200


async def test_requests_just_below_the_limits_are_served() -> None:
    async with serving() as server:
        large = b"X: " + b"x" * (1 << 20) + b"\r\n"
        assert (await answered(server, HEAD, large, b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200")
        many = b"x: y\r\n" * 1000
        assert (await answered(server, HEAD, many, b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200")


TARGETS = {
    b"/healthz?exclude=" + b"%41" * 5000: b"200 OK",
    b"/healthz?" + b"a&" * 1000: b"200 OK",
    b"/healthz?exclude=" + b"%41" * 6000: b"414 Request URI Too Long",
    b"/healthz?" + b"a&" * 1001: b"414 Request URI Too Long",
    b"/" + b"%41" * 6000: b"414 Request URI Too Long",
}


async def test_long_targets_are_refused_unread() -> None:
    async with serving() as server:
        for target, status in TARGETS.items():
            got = await answered(server, b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 " + status + b"\r\n"), target[:20]


@pytest.mark.parametrize("length", [b"Content-Length: 100000000", b"Transfer-Encoding: chunked"])
async def test_a_large_body_is_refused_before_it_has_come(length: bytes) -> None:
    async with serving() as server:
        head = b"PUT /debug/flags/v HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\n" + length + b"\r\n\r\n"
        part = b"x" * 65536
        parts = [b"10000\r\n" + part + b"\r\n"] if b"chunked" in length else [part]
        got = await answered(server, head, *parts * 80)
        assert got.startswith(b"HTTP/1.1 413 Request Entity Too Large")


async def test_slow_callers_are_closed_and_others_served(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = connection_limits.Limits(20, head_s=0.5, idle_s=1.0)
    monkeypatch.setattr(http, "LIMITS", limits)

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof() and reader.exception() is None:  # the server may reset it: it has not read all
            writer.write(b"x")
            await asyncio.sleep(0.05)

    async with (
        serving() as server,
        connected(server) as (dripped, dripping),
        connected(server) as (silent, _),
        connected(server) as (idle, once),
    ):
        _, no_handshake = await asyncio.open_connection("127.0.0.1", server.port)
        dripping.write(HEAD + b"X: ")
        task = asyncio.create_task(drip(dripped, dripping))
        once.write(HEAD + b"\r\n")
        assert (await idle.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert await idle.read() == b"ok"
        assert await rest(silent) == b""
        assert await rest(dripped) == b""
        await task
        no_handshake.transport.abort()
        assert (await server.get("/healthz"))[0] == 200


async def test_a_flood_of_connections_does_not_keep_others_out() -> None:
    """Large heads that never end, handshakes that never start, responses that are not read."""
    async with serving() as server:
        flood = []
        for number in range(http.CONNECTIONS + 50):
            context = insecure() if number % 2 else None
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
            flood.append((reader, writer))
            if number % 4 == 1:
                writer.write(HEAD + b"X: " + b"x" * 400_000)
            elif number % 4 == 3:
                writer.write((HEAD + b"\r\n") * 200)
            if number % 50 == 0:
                assert (await server.get("/healthz"))[0] == 200
        assert (await server.get("/healthz"))[0] == 200
        assert (await server.get("/metrics", token="good"))[0] == 200
        for _, writer in flood:
            writer.transport.abort()
        await asyncio.sleep(0.1)


async def test_a_failed_handshake_sends_its_alert() -> None:
    async with serving() as server:
        context = insecure()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AES128-SHA")
        with pytest.raises(ssl.SSLError, match="(?i)alert"):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
