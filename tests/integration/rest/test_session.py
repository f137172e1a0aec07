"""The real session against a real TLS server."""

import asyncio
import json
import socket
import ssl
import threading
from contextlib import asynccontextmanager, suppress

import pytest

from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest import dialing
from kcm_cli.rest import session as session_module
from kcm_cli.rest.access import Access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.credentials import Credential, Renewing
from kcm_cli.rest.errors import TLSFilesError
from kcm_cli.rest.metrics import NO_SESSION_METRICS
from kcm_cli.rest.pool import KEEPALIVE_S
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.session import Session
from kcm_cli.rest.tls import FILES_PERIOD_S, TLSFiles
from kcm_cli.rest.transport import (
    ConnectionLost,
    Request,
    TimedOut,
    Unreachable,
    Untrusted,
)
from kcm_cli.runtime.leader.fence import Fenced

GET, POST = Request("GET", "/api"), Request("POST", "/api", body=b"{}")


class SteppedClock(LoopClock):
    """Real time that a test may move on."""

    ahead = 0.0

    def monotonic(self):
        return super().monotonic() + self.ahead


@asynccontextmanager
async def session(server, files, clock=None, connections=64, most=64, metrics=NO_SESSION_METRICS, **access):
    made = Session(
        Access(server.url, files, **access),
        clock or LoopClock(),
        metrics,
        connections=connections,
        most_connections=most,
    )
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def connected(serving, authority):
    """A server over TLS and a session with it."""
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path)) as made,
    ):
        yield server, made


async def test_a_request_gets_its_response(serving, authority, plain):
    async with connected(serving, authority) as (server, made):
        server.answer = plain(b'{"a":1}', "201 Created", "X-Thing: 7\r\n")
        request = Request("POST", "/a b/x:y", (("q", "a=b c"),), {"user-agent": "kcm", "accept": "x"}, b"body")
        response = await made.send(request)
        assert (response.status, response.body, response.headers["x-thing"]) == (201, b'{"a":1}', "7")
        (asked,) = server.asked
        assert asked.line == "POST /a%20b/x:y?q=a%3Db+c HTTP/1.1"
        assert asked.body == b"body"
        assert sorted(asked.headers) == [
            ("accept", "x"),
            ("accept-encoding", "identity"),
            ("content-length", "4"),
            ("host", f"127.0.0.1:{server.port}"),
            ("user-agent", "kcm"),
        ]


async def test_a_client_over_tls_returns_views(serving, authority, plain):
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_data=authority.path.read_bytes())) as made,
    ):
        server.answer = plain(json.dumps({"metadata": {"name": "a"}}).encode())
        client = Client(made, limiter=Unlimited(), user_agent="kcm", clock=LoopClock())
        assert (await client.create(PODS, "ns", b"{}")).name == "a"
        assert server.asked[0].header("content-type") == "application/json"


async def test_connections_are_reused_and_limited(serving, authority):
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), most=4) as made,
    ):
        for _ in range(5):
            await made.send(GET)
        assert server.connections == 1
        await asyncio.gather(*(made.send(POST) for _ in range(100)))
        assert server.connections == 4


async def test_a_slow_server_gets_more_connections(serving, authority, plain):
    async def slow(asked, writer):
        await asyncio.sleep(0.15)
        await plain()(asked, writer)

    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), connections=2, most=8) as made,
    ):
        server.answer = slow
        await asyncio.gather(*(made.send(POST) for _ in range(12)))
        assert 4 <= server.connections <= 8


async def test_a_request_without_a_connection_was_not_sent(serving, authority, plain):
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), most=1) as made,
    ):
        arrived, let_go = asyncio.Event(), asyncio.Event()

        async def waits(asked, writer):
            arrived.set()
            await let_go.wait()
            await plain()(asked, writer)

        server.answer = waits
        first = asyncio.create_task(made.send(Request("GET", "/slow")))
        await arrived.wait()
        with pytest.raises(Unreachable, match="all connections are busy"):
            await made.send(Request("GET", "/late", timeout_s=0.05))
        let_go.set()
        assert (await first).status == 200
        assert [asked.line for asked in server.asked] == ["GET /slow HTTP/1.1"]


async def watch_head(asked, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")


async def watch_lines(asked, writer):
    for piece in (b'{"type":', b'"ADDED"}\n', b"{}\n"):
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        await writer.drain()
        await asyncio.sleep(0.01)


async def endless(asked, writer):
    """Ends when writing tells that nobody listens."""
    await watch_head(asked, writer)
    while True:
        await watch_lines(asked, writer)


async def ending(asked, writer):
    await watch_head(asked, writer)
    await watch_lines(asked, writer)
    writer.write(b"0\r\n\r\n")


async def breaking(asked, writer):
    await watch_head(asked, writer)
    await watch_lines(asked, writer)
    writer.transport.abort()
    await asyncio.sleep(0.01)


async def read(made):
    async with made.stream(GET) as stream:
        assert stream.status == 200
        return b"".join([chunk async for chunk in stream.chunks])


async def test_a_watch_ends_when_the_server_ends_it(serving, authority):
    async with connected(serving, authority) as (server, made):
        server.answer = ending
        assert await read(made) == b'{"type":"ADDED"}\n{}\n'


async def test_a_broken_watch_is_an_error(serving, authority):
    async with connected(serving, authority) as (server, made):
        server.answer = breaking
        with pytest.raises(ConnectionLost):
            await read(made)


async def test_watches_do_not_starve_requests_and_are_closed_on_exit(serving, authority, plain):
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), most=1) as made,
    ):
        server.answer = endless
        async with made.stream(GET) as first, made.stream(GET) as second:
            assert await anext(aiter(first.chunks))
            assert await anext(aiter(second.chunks))
            server.answer = plain()
            assert (await made.send(GET)).status == 200
            assert server.open == 3
        while server.open > 1:
            await asyncio.sleep(0.01)


async def silent(asked, writer):
    """Never answers: its connection is closed first, or its task cancelled with the loop."""
    await asyncio.Event().wait()


async def hang_up(asked, writer):
    writer.close()
    await asyncio.sleep(0)


async def half(asked, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
    writer.close()


BROKEN = {
    "silence": (silent, TimedOut, "no answer in time"),
    "hang-up": (hang_up, ConnectionLost, "closed the connection"),
    "half an answer": (half, ConnectionLost, "connection lost"),
}


@pytest.mark.parametrize(("answer", "kind", "text"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_missing_response_is_a_transport_error(serving, authority, answer, kind, text):
    async with connected(serving, authority) as (server, made):
        assert (await made.send(GET)).status == 200  # its connection is kept
        server.answer = answer
        with pytest.raises(kind, match=text) as raised:
            await made.send(Request("POST", "/api", body=b"{}", timeout_s=0.1))
        assert str(raised.value).startswith(f"POST {server.url}/api: ")


async def test_connecting_is_limited_by_the_timeout_of_the_request(authority):
    """The server's backlog accepts the connection, without a TLS handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        access = Access(url, tls=TLSFiles(ca_file=authority.path))
        made = Session(access, LoopClock())
        with pytest.raises(Unreachable, match=r"no connection within 0\.(1|0\d+)s"):
            await made.send(Request("GET", "/api", timeout_s=0.1))
        await made.close()


async def test_a_refused_connection(serving, authority):
    async with serving(authority.issue("server", "127.0.0.1")) as server:
        pass
    async with session(server, TLSFiles(ca_file=authority.path)) as made:
        with pytest.raises(Unreachable, match="connection refused"):
            await made.send(GET)
        with pytest.raises(Unreachable, match="connection refused"):
            await read(made)


async def test_an_unknown_host_is_unreachable(authority):
    made = Session(Access("https://no-such-host.invalid", TLSFiles(ca_file=authority.path)), LoopClock())
    with pytest.raises(Unreachable, match=r"no-such-host\.invalid/api: .*name"):
        await made.send(GET)
    await made.close()


async def test_a_server_of_another_ca_is_not_trusted(serving, authority, another_authority):
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=another_authority.path)) as made,
    ):
        with pytest.raises(
            Untrusted, match=r"not trusted: .*issuer.* \(no CA that is given here has signed it\)$"
        ) as raised:
            await made.send(GET)
        assert "\n" not in str(raised.value)


async def test_the_server_name_must_match_unless_it_is_set(serving, authority):
    async with serving(authority.issue("server", "api.local")) as server:
        files = TLSFiles(ca_file=authority.path)
        async with session(server, files) as made:
            with pytest.raises(Untrusted, match="IP address mismatch|mismatch"):
                await made.send(GET)
        async with session(server, files, server_name="api.local") as made:
            assert (await made.send(GET)).status == 200
            server.answer = ending
            assert await read(made)
        async with session(server, TLSFiles(insecure=True)) as made:
            server.answer = ending
            assert await read(made)


async def test_certificates_have_names_without_the_dot_of_the_root(serving, authority):
    async with serving(authority.issue("server", "localhost")) as server, socks_proxy([]) as proxy:
        files = TLSFiles(ca_file=authority.path)
        async with session(server, files, server_name="localhost.") as made:
            assert (await made.send(GET)).status == 200
        made = Session(Access(f"https://localhost.:{server.port}", files, proxy=f"socks5://{proxy}"), LoopClock())
        assert (await made.send(GET)).status == 200
        await made.close()
        assert server.asked[-1].header("host") == f"localhost.:{server.port}"


async def test_an_ipv6_address_may_have_a_zone(serving, authority):
    async with serving(authority.issue("server", "::1"), host="::1") as server:
        made = Session(Access(f"https://[::1%251]:{server.port}", TLSFiles(ca_file=authority.path)), LoopClock())
        assert (await made.send(GET)).status == 200
        await made.close()
        assert server.asked[-1].header("host") == f"[::1]:{server.port}"


async def test_a_server_without_tls_is_not_trusted(serving, authority):
    async with (
        serving(None) as server,
        session(server, TLSFiles(ca_file=authority.path)) as made,
    ):
        with pytest.raises(Untrusted, match="TLS handshake failed: what answers speaks no TLS"):
            await made.send(GET)


async def test_plain_http(serving):
    async with serving(None) as server:
        made = Session(Access(f"http://127.0.0.1:{server.port}"), LoopClock())
        assert (await made.send(GET)).status == 200
        await made.close()


def client_files(authority, name="jane", inline=False):
    cert, key = authority.issue(name)
    if inline:
        return TLSFiles(ca_file=authority.path, cert_data=cert.read_bytes(), key_data=key.read_bytes())
    return TLSFiles(ca_file=authority.path, cert_file=cert, key_file=key)


@pytest.mark.parametrize("inline", [False, True], ids=["files", "inline"])
async def test_a_client_certificate_is_sent_unless_anonymous(serving, authority, inline):
    files = client_files(authority, inline=inline)
    async with serving(authority.issue("server", "127.0.0.1"), authority.path) as server:
        async with session(server, files) as made:
            await made.send(GET)
        async with session(server, files.anonymous) as made:
            await made.send(GET)
        assert [asked.peer for asked in server.asked] == ["jane", ""]


async def test_a_dynamic_certificate_is_sent_and_replaced_after_a_401(serving, authority, plain):
    """As exec plugins give them."""
    given = iter(["jane", "joan"])

    async def source():
        cert, key = authority.issue(next(given))
        return Credential("", None, (cert.read_bytes(), key.read_bytes()))

    renewing = Renewing(source, LoopClock())
    async with (
        serving(authority.issue("server", "127.0.0.1"), client_ca=authority.path) as server,
        session(server, TLSFiles(ca_file=authority.path), certificate=lambda: renewing.certificate) as made,
    ):
        user = Authorized(made, renewing)
        assert (await user.send(GET)).status == 200
        server.answer = only_for("joan", plain)
        assert (await user.send(GET)).status == 200
        assert [asked.peer for asked in server.asked] == ["jane", "jane", "joan"]
        assert server.connections == 2


async def gathered(*streams):
    for stream in streams:
        assert [chunk async for chunk in stream.chunks] == [b"{}"]


async def test_connections_resume_the_tls_session_of_an_earlier_one(serving, authority):
    """Until files change; a session has been verified with a client certificate, which the server knows again."""
    clock = SteppedClock()
    files = client_files(authority)
    async with (
        serving(authority.issue("server", "127.0.0.1"), authority.path) as server,
        session(server, files, clock) as made,
    ):
        await made.send(GET)
        async with made.stream(GET) as one, made.stream(GET) as other:
            await gathered(one, other)
        for old, new in zip((files.cert_file, files.key_file), authority.issue("janet"), strict=True):
            new.replace(old)
        clock.ahead += FILES_PERIOD_S
        await made.send(GET)
        assert [asked.resumed for asked in server.asked] == [False, True, True, False]
        assert [asked.peer for asked in server.asked] == ["jane", "jane", "jane", "janet"]


class Picky(ssl.SSLObject):
    """A connection to a server that sends tickets, and ends the handshake of whoever shows one, as some do."""

    shown = 0

    @classmethod
    def _create(cls, incoming, outgoing, server_side=False, server_hostname=None, session=None, context=None):
        made = super()._create(incoming, outgoing, server_side, server_hostname, session, context)
        made.shows = session is not None
        return made

    def do_handshake(self):
        super().do_handshake()  # until the server has answered
        if self.shows:
            Picky.shown += 1
            error = ssl.SSLError(1, "session id context uninitialized")
            error.reason = "SESSION_ID_CONTEXT_UNINITIALIZED"
            raise error


async def test_sessions_are_not_resumed_where_that_fails(serving, authority, monkeypatch):
    monkeypatch.setattr(ssl.SSLContext, "sslobject_class", Picky)
    monkeypatch.setattr(Picky, "shown", 0)
    async with connected(serving, authority) as (server, made):
        await made.send(GET)
        with pytest.raises(Unreachable):
            async with made.stream(GET):
                pass
        async with made.stream(GET) as one, made.stream(GET) as other:
            await gathered(one, other)
        assert [asked.resumed for asked in server.asked] == [False, False, False]
        assert Picky.shown == 1


def only_for(name, plain):
    async def answer(asked, writer):
        await plain(b"{}", "200 OK" if asked.peer == name else "401 Unauthorized")(asked, writer)

    return answer


async def test_changed_certificate_files_are_used(serving, authority):
    clock = SteppedClock()
    files = client_files(authority)
    async with (
        serving(authority.issue("server", "127.0.0.1"), authority.path) as server,
        session(server, files, clock) as made,
    ):
        await made.send(GET)
        new_cert, new_key = authority.issue("janet")
        new_cert.replace(files.cert_file)
        new_key.replace(files.key_file)
        await made.send(GET)
        clock.ahead += FILES_PERIOD_S
        await made.send(GET)
        assert [asked.peer for asked in server.asked] == ["jane", "jane", "janet"]
        files.cert_file.write_text("half a file")
        clock.ahead += FILES_PERIOD_S
        await made.send(GET)
        assert server.asked[-1].peer == "janet"


class Counted:
    """The metrics of a session."""

    def __init__(self):
        self.hosts, self.looks = [], []

    def resolved(self, host, took_s):
        self.hosts.append(host)

    def ca_looked_at(self, result, reason):
        self.looks.append((result, reason))


async def test_reloads_of_the_ca_file_are_counted(serving, authority, tmp_path):
    clock, counted = SteppedClock(), Counted()
    ca = tmp_path / "trusted.crt"
    good = authority.path.read_bytes()
    ca.write_bytes(good)
    files = TLSFiles(ca_file=ca)
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, files, clock, metrics=counted) as made,
    ):
        await made.send(GET)
        for content in (None, b"", b"no certificate", good + b"\n"):
            if content is not None:
                ca.write_bytes(content)
            clock.ahead += FILES_PERIOD_S
            await made.send(GET)
        ca.unlink()
        clock.ahead += FILES_PERIOD_S
        await made.send(GET)
    assert counted.looks == [
        ("success", "unchanged"),
        ("failure", "empty"),
        ("failure", "ca_parse_error"),
        ("success", "updated"),
        ("failure", "read_error"),
    ]
    assert counted.hosts == [], "an address needs no resolution"


async def test_resolutions_are_measured_also_failed_ones(authority):
    counted = Counted()
    access = Access("https://nobody.invalid:1", TLSFiles(insecure=True))
    made = Session(access, LoopClock(), counted)
    with pytest.raises(Unreachable):
        await made.send(GET)
    await made.close()
    assert counted.hosts == ["nobody.invalid"]


async def test_impersonation_is_sent_with_every_value(serving, authority):
    groups = (("impersonate-group", "a"), ("impersonate-group", "b"))
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), impersonation=groups) as made,
    ):
        await made.send(GET)
        assert [pair for pair in server.asked[0].headers if pair[0] == "impersonate-group"] == list(groups)


async def hurried(asked, writer):
    writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nWarning: a\r\nwarning: b\r\nContent-Length: 2\r\n\r\n{}")


async def test_interim_responses_are_skipped_and_repeated_headers_joined(serving, authority):
    async with connected(serving, authority) as (server, made):
        server.answer = hurried
        for _ in range(2):
            response = await made.send(POST)
            assert (response.status, response.body, response.headers["warning"]) == (200, b"{}", "a, b")
            assert "link" not in response.headers
        assert server.connections == 1


async def until_close(asked, writer):
    writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    await writer.drain()
    writer.close()


async def test_a_body_can_end_with_its_connection(serving, authority):
    async with connected(serving, authority) as (server, made):
        server.answer = until_close
        assert (await made.send(POST)).body == b"all of it"
        assert await read(made) == b"all of it"
        assert server.connections == 2


async def nonsense(asked, writer):
    writer.write(b"SSH-2.0-server\r\n\r\n")


async def test_an_invalid_response_is_a_lost_connection(serving, authority, plain):
    async with connected(serving, authority) as (server, made):
        server.answer = nonsense
        with pytest.raises(ConnectionLost, match="connection lost: "):
            await made.send(POST)
        server.answer = plain()
        assert (await made.send(POST)).status == 200


def closing_once(plain):
    """Answers the first request, hangs up on the second, and answers all others."""
    asked_so_far = []

    async def answer(asked, writer):
        asked_so_far.append(asked)
        await (hang_up if len(asked_so_far) == 2 else plain())(asked, writer)

    return answer


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_closed_idle_connection_is_replaced(serving, authority, plain, method):
    async with connected(serving, authority) as (server, made):
        server.answer = closing_once(plain)
        await made.send(GET)
        assert (await made.send(Request(method, "/api"))).status == 200
        assert len(server.asked) == 3


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_non_idempotent_requests_are_sent_once(serving, authority, plain, method):
    async with connected(serving, authority) as (server, made):
        server.answer = closing_once(plain)
        await made.send(GET)
        with pytest.raises(ConnectionLost):
            await made.send(Request(method, "/api"))
        assert len(server.asked) == 2


async def test_a_sent_request_is_uncertain_also_if_reconnecting_fails(authority):
    """A server that takes a request and ends. Unreachable would say that it saw nothing."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await reader.readuntil(b"\r\n\r\n")
        running.close()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server", "127.0.0.1"))
    running = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{running.sockets[0].getsockname()[1]}"
    made = Session(Access(url, tls=TLSFiles(ca_file=authority.path)), LoopClock())
    assert (await made.send(GET)).status == 200
    with pytest.raises(ConnectionLost, match="connection refused"):
        await made.send(Request("PUT", "/api"))
    with pytest.raises(Unreachable, match="connection refused"):
        await made.send(Request("PUT", "/api"))
    await made.close()


async def test_a_cancelled_request_closes_its_connection(serving, authority, plain):
    async with connected(serving, authority) as (server, made):
        server.answer = silent
        given_up = asyncio.create_task(made.send(GET))
        while not server.asked:
            await asyncio.sleep(0.01)
        given_up.cancel()
        server.answer = plain(b"mine")
        assert (await made.send(GET)).body == b"mine"
        assert server.connections == 2


async def flood(asked, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for number in range(256):
        writer.write(b"10000\r\n%s\r\n" % (b"%c" % number * 65536))
        await writer.drain()
        flood.sent = number
    writer.write(b"0\r\n\r\n")


async def test_an_unread_stream_applies_backpressure(serving, authority, plain):
    async with connected(serving, authority) as (server, made):
        server.answer, flood.sent = flood, -1
        async with made.stream(GET) as stream:
            before = -2
            while flood.sent != before:
                before = flood.sent
                await asyncio.sleep(0.1)
            assert flood.sent < 255
            body = b"".join([chunk async for chunk in stream.chunks])
        assert body == b"".join(b"%c" % number * 65536 for number in range(256))
        server.answer = plain()
        async with made.stream(GET) as stream:
            assert [chunk async for chunk in stream.chunks] == [b"{}"]
        assert server.connections == 1


async def test_an_invalid_header_is_named(serving, authority):
    async with connected(serving, authority) as (server, made):
        with pytest.raises(Unreachable, match="header authorization .*line break"):
            await made.send(Request("GET", "/api", headers={"authorization": "Bearer a\r\nx: y"}))
        assert not server.asked


async def test_idle_connections_are_closed(serving, authority):
    clock = SteppedClock()
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), clock) as made,
    ):
        await made.send(GET)
        clock.ahead += KEEPALIVE_S
        made._requests._sweep()
        while server.open:
            await asyncio.sleep(0.01)
        assert (await made.send(GET)).status == 200


@pytest.mark.parametrize("part", [b"x: " + b"y" * 60_000 + b"\r\n", b"x: y\r\n" * 100], ids=["long", "many"])
@pytest.mark.parametrize("place", ["head", "trailers"])
async def test_endless_headers_are_limited(serving, authority, part, place):
    async def endless(asked, writer):
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
        writer.write(head if place == "head" else head + b"\r\n2\r\n{}\r\n0\r\n")
        while not writer.is_closing():
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)

    async with connected(serving, authority) as (server, made):
        server.answer = endless
        with pytest.raises(ConnectionLost, match="the headers of the answer are longer than"):
            await made.send(POST)


async def test_concurrent_lookups_of_a_name_are_shared_and_do_not_block(authority, monkeypatch):
    """A lookup can take minutes; shutdown does not wait for it."""
    asked, answer = [], threading.Event()

    def mute(host, port, *_, **__):
        asked.append(threading.current_thread())
        answer.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(dialing.socket, "getaddrinfo", mute)
    files = TLSFiles(ca_file=authority.path)
    made = Session(Access("https://api.nowhere.example", files), LoopClock())
    tasks = [asyncio.create_task(made.send(GET)) for _ in range(20)]
    while not asked:
        await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    answer.set()
    for task in tasks[1:]:
        with pytest.raises(Unreachable, match="(?i)temporary failure"):
            await task
    await made.close()
    assert [thread.daemon for thread in asked] == [True]
    answer.clear()
    asked.clear()


async def test_a_lookup_without_a_thread_is_an_error(authority, monkeypatch):
    def none_left(thread):
        raise RuntimeError("can't start new thread")

    made = Session(Access("https://api.nowhere.example", TLSFiles(ca_file=authority.path)), LoopClock())
    with monkeypatch.context() as limited, pytest.raises(Unreachable, match="temporarily unavailable"):
        limited.setattr(threading.Thread, "start", none_left)
        await made.send(GET)
    await made.close()


@pytest.mark.parametrize("host", [f"{'a' * 70}.example", f"[fe80::1%{'a' * 70}]"])
async def test_an_invalid_host_name_is_an_error(authority, host):
    made = Session(Access(f"https://{host}", TLSFiles(ca_file=authority.path)), LoopClock())
    with pytest.raises(Unreachable, match="is no name of a host"):
        await made.send(GET)
    await made.close()


@pytest.mark.parametrize("name", ["a..b", ".a", ".", f"{'a' * 70}.example", "a\0b"])
async def test_a_name_that_no_certificate_has_is_an_error(serving, authority, name):
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), server_name=name) as made,
    ):
        with pytest.raises(Unreachable, match="is no name of a host"):
            await made.send(GET)


async def test_a_watch_without_a_response_times_out(serving, authority, monkeypatch):
    monkeypatch.setattr(session_module, "REQUEST_TIMEOUT_S", 0.2)
    async with connected(serving, authority) as (server, made):
        server.answer = silent
        with pytest.raises(TimedOut):
            async with made.stream(GET):
                pass


ENDED = "ended"


async def tunnel(reader, writer, seen):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    seen += [lines[0].split()[1], *(line for line in lines if line.startswith("proxy-"))]
    host, _, port = seen[0].rpartition(":")
    up_reader, up_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")

    async def pump(source, sink):
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    try:
        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
    finally:
        with suppress(AttributeError):  # asyncio of Python 3.11.2, for a transport that was closed twice
            writer.transport.abort()
        up_writer.transport.abort()
        seen.append(ENDED)


async def ended(seen):
    """Until the tunnel is gone: uvloop waits in its close for ever for a connection in TLS that is being closed."""
    while ENDED not in seen:
        await asyncio.sleep(0.01)


async def test_a_proxy_is_a_tunnel(serving, authority):
    seen = []
    proxy = await asyncio.start_server(lambda r, w: tunnel(r, w, seen), "127.0.0.1", 0)
    url = f"http://jane:p%40ss@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), proxy=url) as made,
    ):
        assert (await made.send(GET)).status == 200
        assert seen == [f"127.0.0.1:{server.port}", "proxy-authorization: Basic amFuZTpwQHNz"]
    await ended(seen)
    proxy.close()


async def test_a_name_that_no_certificate_has_is_an_error_behind_a_proxy(serving, authority):
    seen = []
    proxy = await asyncio.start_server(lambda r, w: tunnel(r, w, seen), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), proxy=url, server_name="a..b") as made,
    ):
        with pytest.raises(Unreachable, match="is no name of a host"):
            await made.send(GET)
    await ended(seen)
    proxy.close()


async def no_tunnel(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno")
    await writer.drain()
    writer.close()


async def test_a_proxy_that_refuses_is_named(serving, authority):
    proxy = await asyncio.start_server(no_tunnel, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), proxy=url) as made,
    ):
        with pytest.raises(Unreachable, match="the proxy refused: it answered 407"):
            await made.send(POST)
    proxy.close()


async def test_a_proxy_forwards_plain_http(serving):
    async with serving(None) as proxy:
        access = Access("http://api.example:8080", proxy=f"http://127.0.0.1:{proxy.port}")
        made = Session(access, LoopClock())
        assert (await made.send(GET)).status == 200
        await made.close()
        assert proxy.asked[0].line == "GET http://api.example:8080/api HTTP/1.1"
        assert proxy.asked[0].header("host") == "api.example:8080"


async def socks(reader, writer, seen, reply=0):
    """RFC 1928 and 1929, as far as a client that sends a name needs it."""
    _, count = await reader.readexactly(2)
    if 2 in await reader.readexactly(count):
        writer.write(b"\x05\x02")
        user = await reader.readexactly((await reader.readexactly(2))[1])
        seen.append((user, await reader.readexactly((await reader.readexactly(1))[0])))
        writer.write(b"\x01\x00")
    else:
        writer.write(b"\x05\x00")
    *_, kind = await reader.readexactly(4)
    length = 4 if kind == 1 else (await reader.readexactly(1))[0]
    host = await reader.readexactly(length)
    port = int.from_bytes(await reader.readexactly(2))
    seen.append((kind, host, port))
    writer.write(b"\x05" + bytes([reply]) + b"\x00\x01" + bytes(6))
    if reply:
        writer.close()
        return
    up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)

    async def pump(source, sink):
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))


@asynccontextmanager
async def socks_proxy(seen, reply=0, shown="127.0.0.1"):
    proxy = await asyncio.start_server(lambda r, w: socks(r, w, seen, reply), "127.0.0.1", 0)
    try:
        yield f"{shown}:{proxy.sockets[0].getsockname()[1]}"
    finally:
        await asyncio.sleep(0.05)
        proxy.close()


@pytest.mark.parametrize("user", ["", "jane:p%40ss@"], ids=["open", "with a password"])
async def test_a_socks_proxy_gets_the_name_of_the_server(serving, authority, user):
    seen = []
    async with socks_proxy(seen) as proxy, serving(authority.issue("server", "localhost")) as server:
        access = Access(
            f"https://localhost:{server.port}", TLSFiles(ca_file=authority.path), proxy=f"socks5://{user}{proxy}"
        )
        made = Session(access, LoopClock())
        assert (await made.send(GET)).status == 200
        await made.close()
        assert seen[-1] == (3, b"localhost", server.port)
        assert seen[:-1] == ([(b"jane", b"p@ss")] if user else [])


async def test_a_socks_proxy_may_be_at_an_address_with_a_zone(serving, monkeypatch):
    looked_up = []

    def found(host, port):
        looked_up.append(host)
        return socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)

    monkeypatch.setattr(dialing, "_addresses", found)
    async with socks_proxy([], shown="[fe80::1%25eth0]") as proxy, serving(None) as server:
        made = Session(Access(f"http://localhost:{server.port}", proxy=f"socks5://{proxy}"), LoopClock())
        assert (await made.send(GET)).status == 200
        await made.close()
    assert looked_up == ["fe80::1%eth0"]


async def test_plain_http_passes_a_socks_proxy_unchanged(serving):
    seen = []
    async with socks_proxy(seen) as proxy, serving(None) as server:
        made = Session(Access(f"http://127.0.0.1:{server.port}", proxy=f"socks5://{proxy}"), LoopClock())
        assert (await made.send(GET)).status == 200
        await made.close()
        assert server.asked[0].line == "GET /api HTTP/1.1"


async def test_a_refusing_or_unreachable_socks_proxy_is_named(authority):
    files = TLSFiles(ca_file=authority.path)
    async with socks_proxy([], reply=2) as proxy:
        made = Session(Access("https://api.example", files, proxy=f"socks5://{proxy}"), LoopClock())
        with pytest.raises(Unreachable, match="the proxy refused: Connection not allowed by ruleset"):
            await made.send(POST)
        await made.close()
    made = Session(Access("https://api.example", files, proxy=f"socks5://{proxy}"), LoopClock())
    with pytest.raises(Unreachable, match="connection refused"):
        await made.send(POST)
    await made.close()


async def test_a_proxy_can_use_tls(serving, authority):
    seen = []
    certificate = authority.issue("proxy", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    proxy = await asyncio.start_server(lambda r, w: tunnel(r, w, seen), "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), proxy=url) as made,
    ):
        assert (await made.send(GET)).status == 200
        assert seen == [f"127.0.0.1:{server.port}"]
    await ended(seen)
    proxy.close()


def broken_files(authority, another, fault):
    cert, key = authority.issue("jane")
    _, other_key = another.issue("jane")
    missing, nonsense = authority.folder / "missing", authority.folder / "nonsense"
    nonsense.write_text("nonsense")
    ca = authority.path
    return {
        "CA missing": (TLSFiles(ca_file=missing), "cannot read CA file .*missing: No such file"),
        "CA is none": (TLSFiles(ca_file=nonsense), "nonsense holds no CA certificate"),
        "inline CA is none": (TLSFiles(ca_data=b"x"), "certificate-authority-data holds no CA"),
        "certificate missing": (TLSFiles(ca, cert_file=missing, key_file=key), "cannot read .*missing: No such"),
        "key missing": (TLSFiles(ca, cert_file=cert, key_file=missing), "cannot read .*missing: No such"),
        "no key": (TLSFiles(ca, cert_file=cert), "no client-key"),
        "other key": (TLSFiles(ca, cert_file=cert, key_file=other_key), "does not belong to the certificate"),
        "nonsense": (TLSFiles(ca, cert_file=nonsense, key_file=key), "no usable certificate"),
    }[fault]


@pytest.mark.parametrize(
    "fault",
    [
        "CA missing",
        "CA is none",
        "inline CA is none",
        "certificate missing",
        "key missing",
        "no key",
        "other key",
        "nonsense",
    ],
)
async def test_invalid_files_are_named(authority, another_authority, fault):
    files, text = broken_files(authority, another_authority, fault)
    with pytest.raises(TLSFilesError, match=text) as raised:
        Session(Access("https://x", files), LoopClock())
    assert "\n" not in str(raised.value)


async def test_a_waiting_write_is_not_sent_after_the_lease_expired(serving, authority):
    """As after SIGSTOP: what was let through the fence before waits for its turn, and others lead meanwhile."""
    released, safe = asyncio.Event(), [True]

    async def slow(asked, writer):
        await released.wait()
        await answer(asked, writer)

    async with (
        serving(authority.issue("server", "127.0.0.1")) as server,
        session(server, TLSFiles(ca_file=authority.path), connections=1, most=1) as made,
    ):
        answer, server.answer = server.answer, slow
        fenced = Fenced(made, lambda: safe[0])
        first = asyncio.create_task(fenced.send(POST))
        while not server.asked:
            await asyncio.sleep(0.01)
        waiting = [asyncio.create_task(fenced.send(one)) for one in (POST, GET)]
        await asyncio.sleep(0.05)
        safe[0] = False
        released.set()
        assert (await first).status == 200
        with pytest.raises(Unreachable, match="not permitted any more"):
            await waiting[0]
        assert (await waiting[1]).status == 200
        assert [asked.line.split()[0] for asked in server.asked] == ["POST", "GET"]
