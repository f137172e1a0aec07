"""HTTP/1.1 on real sockets, with a handler that returns what it receives."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator

import msgspec
import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.http.server import LIMITS, HttpServer
from kcm_cli.serving import connection
from kcm_cli.serving.connection import _CHUNKED_BYTES, MAX_BODY_BYTES, HttpConnection
from kcm_cli.serving.connection_limits import Limits
from tests.kit.echo import JSON, Client, answer, connected

pytestmark = pytest.mark.real_time


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Under ``LIMITS``, or those that the parameter says."""
    async with connected(getattr(request, "param", LIMITS)) as made:
        yield made


OLD = b"GET %s HTTP/1.0\r\n%s\r\n"


@pytest.mark.parametrize(
    ("head", "status", "text"),
    [
        (b"GET / HTTP/1.1\r\n", 400, b"400 Bad Request: missing required Host header"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n", 400, b"400 Bad Request"),
        (b"GET /%zz HTTP/1.1\r\nhost: a\r\n", 400, b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nhost: a b\r\n", 400, b"400 Bad Request: malformed Host header"),
        (b"GET / HTTP/2.0\r\nhost: a\r\n", 505, b"505 HTTP Version Not Supported: unsupported protocol version"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nexpect: 200-ok\r\n", 417, b""),
        (
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n",
            501,
            b"Unsupported transfer encoding",
        ),
    ],
    ids=["no host", "two hosts", "escape", "host", "version", "expectation", "encoding"],
)
async def test_a_head_that_cannot_be_served_is_refused_at_once(
    head: bytes, status: int, text: bytes, client: Client
) -> None:
    client.send(head + b"\r\n")
    found, headers, body = await client.answer()
    assert (found, body) == (status, text)
    kind = ["Content-Type: text/plain; charset=utf-8"] if text else []
    assert headers == [*kind, "Connection: close", *([] if text else ["Content-Length: 0"])]
    assert await client.reader.read() == b""


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 1\r\n",
        b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +1\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nhost: a\r\n",
        b"GET / HTTP/1.1\nhost: a\n",
    ],
    ids=["length and chunks", "two lengths", "chunks in HTTP/1.0", "chunks twice", "sign", "bytes", "line feeds"],
)
async def test_heads_that_proxies_disagree_on_are_refused(head: bytes, client: Client) -> None:
    client.send(head + b"\r\n")
    assert (await client.answer())[0] == 400


@pytest.mark.parametrize(
    ("second", "status"),
    [
        (b"GET /b HTTP/1.1\r\n\r\n", 400),
        (b"\x00\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
    ],
    ids=["head", "garbage", "size"],
)
async def test_an_error_follows_the_responses_to_earlier_requests(second: bytes, status: int, client: Client) -> None:
    client.send(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n" + second)
    if status == 413:
        client.send(b"x" * (MAX_BODY_BYTES + 1))
    client.send(b"GET /never HTTP/1.1\r\nhost: a\r\n\r\n")
    await asyncio.sleep(0.05)
    client.echo.let_go.set()
    assert (await client.json())["path"] == "/slow"
    assert (await client.answer())[0] == status
    assert await client.reader.read() == b""


async def test_blanks_around_a_header_are_not_part_of_it(client: Client) -> None:
    client.send(b"GET / HTTP/1.1\r\nhost: a \t\r\nimpersonate-user: \t jane doe \t \r\n\r\n")
    assert (await client.json())["as"] == ["jane doe"]
    client.send(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked \r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert (await client.json())["length"] == 3
    client.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3 \r\n\r\nabc")
    assert (await client.json())["length"] == 3


async def test_what_follows_the_last_request_is_not_read(client: Client) -> None:
    client.send(b"GET /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\nGET /b HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await client.json())["path"] == "/a"
    assert await client.reader.read() == b""


async def test_continue_follows_the_responses_to_earlier_requests(client: Client) -> None:
    client.send(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n")
    client.send(b"POST /b HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\nexpect: x, 100-Continue\r\n\r\n")
    await asyncio.sleep(0.05)
    client.echo.let_go.set()
    assert (await client.json())["path"] == "/slow"
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"x")
    assert (await client.json())["path"] == "/b"
    client.send(b"GET /c HTTP/1.1\r\nhost: a\r\nexpect:\r\n\r\n")
    assert (await client.answer())[0] == 200


async def test_continue_is_sent_only_for_a_body(client: Client) -> None:
    client.send(b"GET / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n\r\n")
    assert (await client.answer())[0] == 200


async def test_options_of_the_server_have_no_path(client: Client) -> None:
    client.send(b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n")
    status, headers, body = await client.answer()
    assert (status, body) == (200, b"")
    assert [line.partition(":")[0] for line in headers] == ["Date", "Content-Length"]


async def test_http_1_0_is_answered_in_its_own_version(client: Client) -> None:
    client.send(OLD % (b"/a", b"connection: keep-alive\r\n") + OLD % (b"/gaps", b""))
    head = (await client.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    assert head[0] == "HTTP/1.0 200 OK"
    assert "Connection: keep-alive" in head
    length = next(int(line.partition(":")[2]) for line in head if line.startswith("Content-Length"))
    await client.reader.readexactly(length)
    head = (await client.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    assert not [line for line in head if line.startswith(("Connection", "Transfer-Encoding", "Content-Length"))]
    assert await client.reader.read() == b"ab"


async def test_keeps_the_connection_and_answers_in_order(client: Client) -> None:
    client.send(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\nGET /b%20c?x=1&y=a%2Cb HTTP/1.1\r\nhost: a\r\n\r\n")
    await asyncio.sleep(0)
    client.echo.let_go.set()
    assert (await client.json())["path"] == "/slow"
    status, headers, body = await client.answer()
    assert status == 200
    assert msgspec.json.decode(body) == {
        "method": "GET",
        "path": "/b c",
        "query": [["x", "1"], ["y", "a,b"]],
        "length": 0,
        "as": [],
    }
    assert [line for line in headers if line.startswith("Warning")] == ["Warning: one", "Warning: two"]


@pytest.mark.parametrize(
    ("message", "length"),
    [
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc", 3),
        (b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", 5),
    ],
    ids=["length", "chunked"],
)
async def test_reads_bodies(message: bytes, length: int, client: Client) -> None:
    client.send(message)
    assert (await client.json())["length"] == length


async def test_continue_is_sent_if_the_client_expects_it(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n")
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"x")
    assert (await client.answer())[0] == 200


async def test_refuses_a_body_that_is_too_large(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1))
    client.send(b"x" * (MAX_BODY_BYTES + 1))
    status, _headers, body = await client.answer()
    assert status == 413
    assert msgspec.json.decode(body)["reason"] == "RequestEntityTooLarge"


HEAD = b"GET / HTTP/1.1\r\nhost: a\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD, b"x: ", *[b"x" * 65536] * 17],
        [HEAD, *[b"x: y\r\n" * 1000] * 2, b"\r\n"],
        [b"GET /", *[b"x" * 65536] * 17],
    ],
    ids=["one large header", "many headers", "a large request line"],
)
async def test_a_head_that_is_too_large_is_refused(parts: list[bytes], client: Client) -> None:
    for part in parts:
        client.send(part)
        await asyncio.sleep(0)
    assert (await client.answer())[0] == 431


async def test_a_head_in_several_parts_is_read(client: Client) -> None:
    for part in (
        HEAD,
        b"x: " + b"x" * 500_000,
        b"\r",
        b"\n",
        b"\r",
        b"\nGET /two HTTP/1.1\r\nhost: a\r\n",
        b"a: b\r\n\r\n",
    ):
        client.send(part)
        await asyncio.sleep(0.01)
    assert (await client.json())["path"] == "/"
    assert (await client.json())["path"] == "/two"


LONE = (b"GET / HTTP/1.1\nhost: a\r\n\r\n", HEAD + b"a: b\n\r\n", HEAD + b"\n", HEAD + b"a: b\nc: d\n\n")


@pytest.mark.parametrize("head", [*LONE, HEAD + b"a: b\r\n c\r\n\r\n"], ids=[*("lone newlines",) * len(LONE), "folded"])
@pytest.mark.parametrize("whole", [True, False])
async def test_invalid_line_ends_are_refused_at_once(head: bytes, whole: bool, client: Client) -> None:
    """net/http accepts them."""
    for part in [head] if whole else [head[at : at + 1] for at in range(len(head))]:
        client.send(part)
        await asyncio.sleep(0 if whole else 0.001)
    assert (await client.answer())[0] == 400


@pytest.mark.parametrize("client", [Limits(4, head_s=0.2, idle_s=0.2, sweep_s=0.05)], indirect=True)
async def test_idle_clients_are_closed_and_streams_are_not(client: Client) -> None:
    port = client.writer.get_extra_info("peername")
    watch, watching = await asyncio.open_connection(*port)
    watching.write(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n")
    await watch.readuntil(b'{"n":1}\n')
    client.send(HEAD)
    assert await client.reader.read() == b""
    idle, once = await asyncio.open_connection(*port)
    once.write(HEAD + b"\r\n")
    assert (await answer(idle))[0] == 200
    assert await idle.read() == b""
    assert len(client.server.open) == 1
    watching.close()
    once.close()


@pytest.mark.parametrize("client", [Limits(3)], indirect=True)
async def test_new_connections_displace_those_that_wait(client: Client) -> None:
    address = client.writer.get_extra_info("peername")
    streams = [await asyncio.open_connection(*address) for _ in range(3)]
    assert await client.reader.read() == b""
    last, asking = streams[-1]
    asking.write(HEAD + b"\r\n")
    assert (await answer(last))[0] == 200
    for _, writer in streams:
        writer.close()


async def test_an_unknown_method_is_not_allowed_on_any_path(client: Client) -> None:
    client.send(b"FROB /x HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await client.json())["method"] == "TRACE"


async def test_an_unknown_method_that_asks_for_an_upgrade_is_answered(client: Client) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    client.send(b"FROB /x HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
    assert (await client.json())["method"] == "TRACE"
    assert await client.reader.read() == b""
    assert failures == []


@pytest.mark.parametrize("sent", [b"\x16\x03\x01 hello\r\n\r\n", b"\x00\x01\x02\r\n\r\n"], ids=["words", "no word"])
async def test_invalid_http_gets_400(sent: bytes, client: Client) -> None:
    client.send(sent)
    assert (await client.answer())[0] == 400
    assert await client.reader.read() == b""


async def test_head_has_no_body(client: Client) -> None:
    client.send(b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\nGET /next HTTP/1.1\r\nhost: a\r\n\r\n")
    await client.answer(head=True)
    assert (await client.json())["path"] == "/next"


async def test_a_stream_ends_with_its_client(client: Client) -> None:
    client.send(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n")
    await client.reader.readuntil(b"\r\n\r\n")
    assert await client.reader.readexactly(13) == b'8\r\n{"n":1}\n\r\n'
    client.writer.close()
    await client.echo.ended.wait()
    while client.server.open:
        await asyncio.sleep(0)


async def test_stopping_waits_for_answers_but_not_for_streams(client: Client) -> None:
    client.send(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n")
    await client.reader.readuntil(b"\r\n\r\n")
    start = asyncio.get_running_loop().time()
    await client.server.stop(5)
    assert asyncio.get_running_loop().time() - start < 1
    await client.echo.ended.wait()


async def test_repeated_headers_keep_their_values() -> None:
    seen: dict[str, str] = {}

    async def note(request: Request, peer: bytes | None) -> Response:
        seen.update(request.headers)
        return Response(200, JSON, b"{}")

    server = HttpServer(note, LoopClock(), apart=("x-remote-group", "x-remote-extra-"))
    listener = socket.create_server(("127.0.0.1", 0))
    await server.start([listener], None)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    lines = [
        "GET /a HTTP/1.1",
        "host: a",
        "X-Remote-Group: d, e",
        "X-Remote-Group: f",
        "X-Remote-Extra-a: g",
        "X-Remote-Extra-a: h",
        "Impersonate-Group: a, b",
        "Impersonate-Group: c",
        "Accept: x",
        "Accept: y",
    ]
    lines += ["Authorization: Bearer a", "Authorization: Bearer b", "Content-Type: A/B", "Content-Type: c/d"]
    writer.write("\r\n".join((*lines, "", "")).encode())
    await answer(reader)
    writer.close()
    await server.stop(0.1)
    assert (seen["impersonate-group"], seen["accept"]) == ("a, b\nc", "x, y")
    assert (seen["x-remote-group"], seen["x-remote-extra-a"]) == ("d, e\nf", "g\nh")
    assert (seen["authorization"], seen["content-type"]) == ("Bearer a", "a/b"), "the first counts"


async def test_a_request_has_the_address_of_its_client() -> None:
    """Not its network, by which requests take turns: X-Forwarded-For has it."""
    seen: list[str] = []

    async def note(request: Request, peer: bytes | None) -> Response:
        seen.append(request.address)
        return Response(200, JSON, b"{}")

    server = HttpServer(note, LoopClock())
    here, there = socket.socketpair()
    slot = server.limits.admit("fd00::1", here.close)
    await asyncio.get_running_loop().connect_accepted_socket(lambda: HttpConnection(server, slot), here)
    reader, writer = await asyncio.open_connection(sock=there)
    writer.write(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
    await answer(reader)
    writer.close()
    await server.stop(0.1)
    assert seen == ["fd00::1"]


async def test_an_error_in_the_handler_is_an_answer_and_is_logged(
    caplog: pytest.LogCaptureFixture, client: Client
) -> None:
    client.send(b"GET /broken HTTP/1.1\r\nhost: a\r\n\r\n")
    status, headers, body = await client.answer()
    assert (status, msgspec.json.decode(body)["reason"]) == (500, "InternalError")
    assert "Connection: close" in headers
    assert await client.reader.read() == b""
    assert "RuntimeError: broken" in caplog.text


async def test_an_error_in_a_stream_breaks_it_off(caplog: pytest.LogCaptureFixture, client: Client) -> None:
    client.send(b"GET /breaks HTTP/1.1\r\nhost: a\r\n\r\n")
    try:
        assert not (await client.reader.read()).endswith(b"0\r\n\r\n")
    except ConnectionResetError:
        pass
    assert "RuntimeError: broken" in caplog.text


PIECES = (
    *(b"GET ", b"POST ", b"ODD ", b"/", b"/%zz%00%ff?a=%", b"http://[::1/a", b"*", b" HTTP/1.1\r\n", b" HTTP/9.9\r\n"),
    *(b"\r\n", b"\r\n\r\n", b"content-length: 3\r\n", b"content-length: -1\r\n", b"content-length: %d\r\n" % 10**30),
    *(b"transfer-encoding: chunked\r\n", b"transfer-encoding: x\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b"zz\r\n", b"abc"),
    *(
        b"expect: 100-continue\r\n",
        b"connection: close\r\n",
        b"connection: upgrade\r\nupgrade: h2c\r\n",
        b"host: \xff\r\n",
    ),
    *(b"x" * 70_000, b"a: b\r\n" * 500, b"\x00", b"\xff\xfe", b"accept-encoding: gzip\r\n", b"\x16\x03\x01"),
    *(b"impersonate-user: a\r\nimpersonate-user: b\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /x HTTP/1.1\r\n"),
)


async def test_any_bytes_leave_the_server_running(caplog: pytest.LogCaptureFixture, client: Client) -> None:
    rng = random.Random(1)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    for _number in range(300):
        sent = b"".join(rng.choices(PIECES, k=rng.randrange(1, 9)))
        _reader, other = await asyncio.open_connection(*client.writer.get_extra_info("peername"))
        other.write(b"GET /x HTTP/1.1\r\nhost: a\r\n" + sent if rng.random() < 0.5 else sent)
        if rng.random() < 0.5:
            other.write_eof()
        await asyncio.sleep(0)
        other.close()
    client.send(b"GET /still HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await client.answer())[0] == 200
    assert failures == []
    assert [record.getMessage() for record in caplog.records if record.name.startswith("kcm_cli")] == []


async def test_an_empty_part_does_not_end_a_stream(client: Client) -> None:
    client.send(b"GET /gaps HTTP/1.1\r\nHost: a\r\n\r\n")
    await client.reader.readuntil(b"\r\n\r\n")
    assert await client.reader.readuntil(b"0\r\n\r\n") == b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n"


NEXT = b"GET /next HTTP/1.1\r\nhost: a\r\nx-note: yes\r\n\r\n"


async def test_a_large_answer_is_written_in_pieces_between_which_others_go_on(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PIECE", 64 * 1024)
    (serving,) = client.server.open
    transport, sizes, turns = serving.transport, list[int](), 0

    class Noted:
        """Notes what is written."""

        def write(self, data: bytes) -> None:
            sizes.append(len(data))
            transport.write(data)  # type: ignore[union-attr]

        def __getattr__(self, name: str) -> object:
            return getattr(transport, name)

    serving.transport = Noted()  # type: ignore[assignment]
    client.send(b"GET /big HTTP/1.1\r\nhost: a\r\n\r\n")
    asked = asyncio.create_task(client.answer())
    while not asked.done():
        turns += 1
        await asyncio.sleep(0)
    assert asked.result()[2] == b"x" * 200_000
    assert len(sizes) == 4
    assert max(sizes) < 64 * 1024 + 1024
    assert turns > 4


async def test_a_client_that_leaves_in_the_middle_of_a_large_answer_is_forgotten(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "_PIECE", 1024)
    client.send(b"GET /big HTTP/1.1\r\nhost: a\r\n\r\n")
    await client.reader.readexactly(1024)
    client.writer.transport.abort()
    while client.server.open:
        await asyncio.sleep(0)
    assert not caplog.records


@pytest.mark.parametrize("begun", range(len(NEXT) + 1))
async def test_a_request_after_a_chunked_body_is_complete_wherever_it_is_cut(begun: int, client: Client) -> None:
    """begun: the bytes of it that are parsed with the end of the body."""
    ends = b"\r\n0\r\n\r\n"
    body = b"%x\r\n" % (_CHUNKED_BYTES - begun - len(ends) - len(b"1ff\r\n"))
    body += b"b" * (_CHUNKED_BYTES - begun - len(ends) - len(body)) + ends
    client.send(b"POST /slow HTTP/1.1\r\nhost: a\r\n\r\nPOST / HTTP/1.1\r\nhost: a\r\n")
    client.send(b"transfer-encoding: chunked\r\n\r\n" + body + NEXT)
    client.echo.let_go.set()
    await client.answer()
    assert (await client.json())["method"] == "POST"
    assert (await client.json())["path"] == "/next"
