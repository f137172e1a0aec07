"""Proxies that stall, are slow, respond invalidly or hang up: one timeout, one clear error, no open socket."""

import asyncio
import re
import socket
from contextlib import asynccontextmanager

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest import session
from kcm_cli.rest.access import Access
from kcm_cli.rest.session import Session
from kcm_cli.rest.tls import TLSFiles
from kcm_cli.rest.transport import Request, Unreachable

GET = Request("GET", "/api")
STALL, CLOSE, DRIP = "stall", "close", "drip"
GRANTED = b"\x05\x00\x00\x01" + bytes(6)
CONNECTED = b"HTTP/1.1 200 Connected\r\n\r\n"
LONG = b"x: " + b"y" * 65_000 + b"\r\n"

LATE = "no connection within"
GONE = "the proxy refused: Connection closed unexpectedly|the server closed the connection|reset by peer|broken pipe"
NO_TLS = "TLS handshake failed"
SOCKS = {
    "accepts and stalls": ([STALL], LATE),
    "accepts and closes": ([CLOSE], GONE),
    "stalls after its method": ([b"\x05\x00", STALL], LATE),
    "closes after its method": ([b"\x05\x00", CLOSE], GONE),
    "stalls in its reply": ([b"\x05\x00", GRANTED[:5], STALL], LATE),
    "grants and stalls": ([b"\x05\x00", GRANTED, STALL], LATE),
    "grants and closes": ([b"\x05\x00", GRANTED, CLOSE], "connection|TLS|ssl"),
    "speaks HTTP": ([b"HTTP/1.1 400 Bad Request\r\n\r\n", STALL], "the proxy refused: Unexpected SOCKS version"),
    "wants another method": ([b"\x05\x01", STALL], "the proxy refused: Unexpected SOCKS authentication method"),
    "wants a method that there is not": ([b"\x05\x77", STALL], "refused: Unexpected SOCKS authentication method: 119"),
    "accepts no method": ([b"\x05\xff", STALL], "the proxy refused: No acceptable authentication methods"),
    "closes in its reply": ([b"\x05\x00", GRANTED[:5], CLOSE], GONE),
    "refuses for an unknown reason": ([b"\x05\x00", b"\x05\x63" + bytes(8), STALL], "refused: Invalid reply code: 99"),
    "has an address of IPv6": ([b"\x05\x00", b"\x05\x00\x00\x04" + bytes(18), b"garbage" * 10, STALL], NO_TLS),
    "has a name": ([b"\x05\x00", b"\x05\x00\x00\x03\x02up\x00\x50", b"garbage" * 10, STALL], NO_TLS),
    "replies garbage": ([b"\x05\x00", b"\xff" * 40, STALL], "the proxy refused"),
    "has an unknown address": ([b"\x05\x00", b"\x05\x00\x00\x09" + bytes(40), STALL], "the proxy refused"),
    "grants and speaks no TLS": ([b"\x05\x00", GRANTED, b"garbage" * 10, STALL], "TLS handshake failed"),
}
HTTP = {
    "accepts and stalls": ([STALL], LATE),
    "accepts and closes": ([CLOSE], GONE),
    "stalls in its head": ([CONNECTED[:20], STALL], LATE),
    "closes in its head": ([CONNECTED[:20], CLOSE], GONE),
    "connects and stalls": ([CONNECTED, STALL], LATE),
    "connects and closes": ([CONNECTED, CLOSE], "connection|TLS|ssl"),
    "goes on for ever": ([b"HTTP/1.1 100 Continue\r\n\r\n" * 50, STALL], LATE),
    "has no end of headers": ([CONNECTED[:-2], *[LONG] * 40, STALL], "the headers of the answer are longer"),
    "has no end of short headers": ([CONNECTED[:-2], b"x: y\r\n" * 2000, STALL], "the headers of the answer are"),
    "speaks no HTTP": ([b"\x05\x00" * 20, STALL], "(?i)http|expected|invalid"),
    "connects and speaks no TLS": ([CONNECTED, b"garbage" * 10, STALL], "TLS handshake failed"),
    "redirects": ([b"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/\r\n\r\n", STALL], "it answered 307"),
}
CASES = [("socks5", name, *case) for name, case in SOCKS.items()] + [
    ("http", name, *case) for name, case in HTTP.items()
]


class Proxy:
    """Does what a script says, and counts the connections that are still open."""

    def __init__(self, steps, *, slowly=False):
        self.steps, self.slowly, self.open, self.served, self.port = steps, slowly, 0, 0, 0
        self.heard = []

    async def serve(self, reader, writer):
        self.open, self.served, said = self.open + 1, self.served + 1, False
        try:
            for step in self.steps:
                if step is STALL:
                    while await reader.read(65536):
                        pass
                elif step is CLOSE:
                    break
                else:
                    if not said:
                        self.heard.append(await reader.read(65536))
                    said = step in (LONG, CONNECTED[:-2])
                    for part in (bytes([one]) for one in step) if self.slowly else (step,):
                        writer.write(part)
                        await writer.drain()
                        await asyncio.sleep(0)
        except ConnectionError:
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def serving_proxy(proxy):
    running = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = running.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        running.close()


@pytest.fixture
def wait_at_most(monkeypatch):
    def wait(seconds):
        monkeypatch.setattr(session, "CONNECT_TIMEOUT_S", seconds)

    return wait


@asynccontextmanager
async def through(scheme, steps, authority, *, slowly=False):
    """A session whose server is behind such a proxy, and the proxy."""
    async with serving_proxy(Proxy(steps, slowly=slowly)) as proxy:
        files = TLSFiles(ca_file=authority.path)
        made = Session(Access("https://api.example", files, proxy=f"{scheme}://127.0.0.1:{proxy.port}"), LoopClock())
        try:
            yield made, proxy
        finally:
            await made.close()


async def left_by_all(proxy):
    while proxy.open:
        await asyncio.sleep(0.01)


async def test_a_proxy_that_does_not_connect_times_out_with_a_reason(authority, wait_at_most):
    """The reason is the proxy's error, also on a slow machine."""

    async def refused(scheme, name, steps, expected):
        async with through(scheme, steps, authority) as (made, proxy):
            with pytest.raises(Unreachable) as sent:
                await made.send(GET)
            with pytest.raises(Unreachable) as opened:
                async with made.stream(GET):
                    pass
            for caught in (sent, opened):
                assert re.search(expected, str(caught.value)), (scheme, name, str(caught.value))
            await left_by_all(proxy)
            assert proxy.served == 2 or expected == LATE, (scheme, name)

    for seconds, late in ((0.4, True), (60, False)):
        wait_at_most(seconds)
        await asyncio.gather(*(refused(*case) for case in CASES if (case[-1] == LATE) == late))


async def test_waiting_for_a_proxy_can_be_cancelled(authority, wait_at_most):
    wait_at_most(60)

    async def cancelled(scheme, name, steps, expected):
        async with through(scheme, [*(step for step in steps if step is not CLOSE), STALL], authority) as (made, proxy):
            task = asyncio.create_task(made.send(GET))
            await asyncio.sleep(0.2)  # most are at their STALL then; on a slow machine it holds at any step before
            task.cancel()
            await asyncio.wait([task])
            await left_by_all(proxy)
            assert task.cancelled() or isinstance(task.exception(), Unreachable), (scheme, name)

    await asyncio.gather(*(cancelled(*case) for case in CASES))


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
async def test_a_proxy_that_is_down_is_named_without_its_password(authority, scheme):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        access = Access(
            "https://api.example", TLSFiles(ca_file=authority.path), proxy=f"{scheme}://jane:pass@127.0.0.1:{port}"
        )
        made = Session(access, LoopClock())
        with pytest.raises(
            Unreachable, match=rf"/api: proxy {scheme}://jane:\*\*\*@127\.0\.0\.1:{port}: connection refused$"
        ):
            await made.send(GET)
        await made.close()


async def test_values_that_socks_cannot_encode_are_an_error(authority):
    async with serving_proxy(Proxy([b"\x05\x02", STALL])) as proxy:
        files = TLSFiles(ca_file=authority.path)
        access = Access("https://api.example", files, proxy=f"socks5://jane:{'p' * 300}@127.0.0.1:{proxy.port}")
        made = Session(access, LoopClock())
        with pytest.raises(Unreachable, match="cannot be sent to it"):
            await made.send(GET)
        await made.close()


@pytest.mark.parametrize(
    ("user", "sent"), [("j\u00e4ne:p\u00e4ss", ("j\u00e4ne", "p\u00e4ss")), ("jane", ("jane", ""))]
)
async def test_a_socks_proxy_gets_user_and_password_in_utf_8(authority, user, sent):
    async with serving_proxy(Proxy([b"\x05\x02", b"\x01\x01", STALL])) as proxy:
        files = TLSFiles(ca_file=authority.path)
        made = Session(
            Access("https://api.example", files, proxy=f"socks5://{user}@127.0.0.1:{proxy.port}"), LoopClock()
        )
        with pytest.raises(Unreachable, match="authentication failure"):
            await made.send(GET)
        await made.close()
        name, password = (text.encode() for text in sent)
        assert proxy.heard[1] == bytes([1, len(name)]) + name + bytes([len(password)]) + password


async def test_a_socks_proxy_that_refuses_the_user_is_named(authority):
    async with serving_proxy(Proxy([b"\x05\x02", b"\x01\x01", STALL])) as proxy:
        files = TLSFiles(ca_file=authority.path)
        access = Access("https://api.example", files, proxy=f"socks5://jane:wrong@127.0.0.1:{proxy.port}")
        made = Session(access, LoopClock())
        with pytest.raises(Unreachable, match="the proxy refused: Username and password authentication failure"):
            await made.send(GET)
        await made.close()
        await left_by_all(proxy)


async def test_a_slow_proxy_is_waited_for(authority):
    """A reply byte by byte is slow, but valid: then only the server behind it is missing."""
    for scheme, steps in (("socks5", [b"\x05\x00", GRANTED]), ("http", [CONNECTED])):
        async with through(scheme, [*steps, CLOSE], authority, slowly=True) as (made, _):
            with pytest.raises(Unreachable, match="connection|TLS|ssl"):
                await made.send(GET)
