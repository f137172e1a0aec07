"""Passes requests on to the servers behind proxies of pods and Services, and their answers back.

A redirect within the server leads through the proxy. Links in bodies are not rewritten.

upstream: apimachinery pkg/util/proxy/{upgradeaware,transport}.go (v1.36)
"""

import asyncio
import os
import posixpath
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import TypeVar
from urllib import parse

import httptools
import msgspec

from kcm_cli.component.clock import in_real_time
from kcm_cli.component.user_headers import STANDARD
from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.rest.connection import Connection, Incoming
from kcm_cli.rest.transport import BLANK, Request, Response, Stream
from kcm_cli.sandbox.apiserver.errors import plain
from kcm_cli.sandbox.apiserver.types import ApiError
from kcm_cli.sandbox.apiserver.webhooks.routes import Where
from kcm_cli.serving.upgrade import Duplex, upgraded

T = TypeVar("T")

_CONNECT_S, _HELD_S, _REFUSAL_S = 30.0, 3.0, 10.0
_MOST_DIGITS = 18
_PART, _WHOLE, _MOST_REFUSAL = 32 * 1024, 64 * 1024, 1 << 20
"""The most bytes that are copied at once, of an answer that is sent as a whole, and of a refusal to upgrade."""
_NO_CONTENT, _NOT_MODIFIED, _ERRORS = 204, 304, 400
_NOT_PASSED = frozenset((
    "authorization", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
))  # fmt: skip
"""Headers of one connection, and the credentials."""
_UPGRADING = frozenset(("connection", "upgrade"))
_NOT_PASSED_BACK = _NOT_PASSED | {
    f"access-control-allow-{name}" for name in ("credentials", "headers", "methods", "origin")
}
_IMPERSONATES, _FORWARDED_FOR = "impersonate-", "x-forwarded-for"
_SAFE = "/:@!$&'()*+,;=~-._"


class Proxied(msgspec.Struct, frozen=True):
    """What a request asks of the server behind a proxy. prefix: the path of the proxy. path: what follows, empty or
    from a slash on."""

    request: Request
    prefix: str
    path: str

    @property
    def upgrades(self) -> bool:
        """Whether the client wants another protocol."""
        headers = self.request.headers
        return bool(headers.get("upgrade")) and "upgrade" in headers.get("connection", "").lower()

    @property
    def query(self) -> str:
        """The query as the client has sent it, with its question mark."""
        sent = self.request.sent_query
        query = parse.urlencode(self.request.query) if sent is None else sent
        return query and f"?{query}"


def proxied(request: Request, plural: str, name: str) -> Proxied:
    """What a request for ``.../PLURAL/NAME/proxy/...`` asks for, without empty parts and dots."""
    before, mark, path = request.path.partition(f"/{plural}/{name}/proxy")
    if path:
        path = f"/{posixpath.normpath(path).lstrip('/')}{'/' if path.endswith('/') else ''}".replace("//", "/")
    return Proxied(request, before + mark, path)


def unavailable(why: str) -> ApiError:
    """503: no server can be reached."""
    return ApiError(503, "ServiceUnavailable", why)


async def passed_on(asked: Proxied, where: Where, *, secure: bool) -> Response | Stream:
    """The response of a server. secure: whether it speaks TLS. Its certificate is not verified. Raises ApiError 500,
    503."""
    if asked.upgrades:
        return await _upgraded(asked, where, secure=secure)
    if not asked.path and asked.request.method in ("GET", "HEAD"):
        return Response(301, {"location": f"{asked.prefix}/{asked.query}"}, b"")
    dial = partial(asyncio.get_running_loop().create_connection, Connection)
    try:
        _, connection = await _dialed(dial, where, secure=secure)
    except (OSError, TimeoutError) as error:
        raise _unreachable(where, error) from None
    bodiless = asked.request.method == "HEAD"
    try:
        with _in_real_time_at_first():
            incoming = await connection.open(_request(asked, where), bodiless=bodiless)
            headers = _answered(asked, where, incoming.headers.fields)
            length = _length(incoming)
            if not bodiless and (incoming.status in (_NO_CONTENT, _NOT_MODIFIED) or 0 <= length <= _WHOLE):
                try:
                    return Response(incoming.status, headers, await _whole(incoming))
                finally:
                    connection.close()
    except (ConnectionError, httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
        connection.close()
        raise unavailable(f"error trying to reach service: {error}") from None
    except BaseException:
        connection.close()
        raise
    if length >= 0:
        headers["content-length"] = str(length)
    return Stream(incoming.status, headers, _Body(connection, incoming))


async def _dialed(dial: Callable[..., Awaitable[T]], where: Where, *, secure: bool) -> T:
    """A connection, made in real time. ``dial``: has the parameters of ``asyncio.open_connection``. Raises OSError,
    TimeoutError."""
    host, port = where
    with in_real_time():
        async with asyncio.timeout(_CONNECT_S):
            return await dial(host, port, ssl=_context(secure=secure), server_hostname=host if secure else None)


@contextmanager
def _in_real_time_at_first() -> Iterator[None]:
    """Blocks jumps of virtual time for _HELD_S, in which nearly all servers answer: they are not in the cluster's
    time. Those that are would wait for ever."""
    with ExitStack() as held:
        held.enter_context(in_real_time())
        timer = asyncio.get_running_loop().call_later(_HELD_S, held.close)
        try:
            yield
        finally:
            timer.cancel()


@cache
def _context(*, secure: bool) -> ssl.SSLContext | None:
    if not secure:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the machine's authorities, which take long to read
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _unreachable(where: Where, error: Exception) -> ApiError:
    return unavailable(f"error trying to reach service: {_why(where, error)}")


def _why(where: Where, error: Exception) -> str:
    host, port = where
    if isinstance(error, ssl.SSLError):
        if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return "tls: first record does not look like a TLS handshake"
        return f"remote error: tls: {(error.reason or 'handshake failure').replace('_', ' ').lower()}"
    shown = host_and_port(host, port)
    number = error.errno if isinstance(error, OSError) else None
    why = str(error) or "i/o timeout" if number is None else os.strerror(number).lower()
    return f"dial tcp {shown}: connect: {why}"


def _length(incoming: Incoming) -> int:
    """The bytes of a body as its headers say; -1 if they do not."""
    length = incoming.headers.get("content-length", "")
    known = length.isascii() and length.isdigit() and len(length) <= _MOST_DIGITS
    return int(length) if known and "transfer-encoding" not in incoming.headers else -1


async def _whole(incoming: Incoming) -> bytes:
    parts: list[bytes] = []
    while data := await incoming.read():
        parts.append(data)
    return b"".join(parts)


class _Body(AsyncIterator[bytes]):
    """A body as it comes. Its connection is closed at its end, or with it, also where nothing was read."""

    def __init__(self, connection: Connection, incoming: Incoming) -> None:
        self._connection = connection
        self._incoming = incoming

    async def __anext__(self) -> bytes:
        try:
            if data := await self._incoming.read():
                return data
        except BaseException:
            self._connection.close()
            raise
        self._connection.close()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection."""
        self._connection.close()


# -- requests and headers


def _request(asked: Proxied, where: Where) -> bytes:
    """The request in bytes. One that upgrades has no query, as upstream, and all headers."""
    request, upgrades = asked.request, asked.upgrades
    path = parse.quote(asked.path or "/", safe=_SAFE)
    hops = _NOT_PASSED - _UPGRADING if upgrades else _NOT_PASSED | _named(request.headers.get("connection", ""))
    passed = {
        name: value
        for name, value in request.headers.items()
        if name not in hops and not name.startswith(_IMPERSONATES) and not STANDARD.has(name)
    }
    if request.address:
        passed[_FORWARDED_FOR] = ", ".join([*filter(None, [passed.get(_FORWARDED_FOR)]), request.address])
    if not upgrades:
        passed["x-forwarded-uri"] = f"{parse.quote(asked.prefix, safe=_SAFE)}{path}"
        passed["connection"] = "close"
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        passed["content-length"] = str(len(request.body))
    lines = [f"{request.method} {path}{'' if upgrades else asked.query} HTTP/1.1"]
    lines.append(f"Host: {request.headers.get('host') or '{}:{}'.format(*where)}")
    lines += [f"{name}: {value}" for name, value in passed.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + request.body


def _named(connection: str) -> frozenset[str]:
    """The headers that a header Connection names: they are for the next hop only."""
    return frozenset(name.strip().lower() for name in connection.split(","))


def _decoded(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by their names in lower case; repeated ones have a line each. Their bytes can be restored."""
    found: dict[str, str] = {}
    for name, value in fields:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")
        found[key] = f"{found[key]}\n{text}" if key in found else text
    return found


def _answered(asked: Proxied, where: Where, fields: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers of an answer."""
    found = _decoded(fields)
    for name in _NOT_PASSED_BACK | _named(found.get("connection", "").replace("\n", ",")):
        found.pop(name, None)
    if "location" in found:
        found["location"] = _through(asked, where, found["location"])
    return found


def _through(asked: Proxied, where: Where, location: str) -> str:
    """The target of a redirect: through the proxy, if it is an absolute path of the server."""
    try:
        url = parse.urlsplit(location)
    except ValueError:
        return location
    ours = asked.request.headers.get("host", "")
    if url.netloc not in ("", ours, "{}:{}".format(*where)) or not url.path.startswith("/"):
        return location
    if url.netloc != ours:
        url = url._replace(scheme="", netloc="")
    if url.path.startswith(asked.prefix):
        return url.geturl()
    path = posixpath.normpath(f"{asked.prefix}{url.path}")
    return url._replace(path=f"{path}/" if url.path.endswith("/") else path).geturl()


# -- other protocols


class _Answer:
    """The answer to a request for another protocol, as httptools reads it."""

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.has_head = self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value.rstrip(BLANK)))

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_whole = True


async def _upgraded(asked: Proxied, where: Where, *, secure: bool) -> Response | Stream:
    """Ask the server for the other protocol. Raises ApiError 500."""
    try:
        reader, writer = await _dialed(asyncio.open_connection, where, secure=secure)
    except (OSError, TimeoutError) as error:
        raise plain(f"error dialing backend: {_why(where, error)}") from None
    try:
        with _in_real_time_at_first():
            return await _switched(asked, where, reader, writer)
    except (OSError, httptools.HttpParserError) as error:
        writer.close()
        raise plain(str(error)) from None
    except BaseException:
        writer.close()
        raise


async def _switched(
    asked: Proxied, where: Where, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Response | Stream:
    """Raises ApiError 500, OSError, HttpParserError."""
    writer.write(_request(asked, where))
    answer, read = _Answer(), 0
    parser = httptools.HttpResponseParser(answer)
    while not answer.has_head:
        data = await reader.read(_PART)
        read += len(data)
        if not data or read > _MOST_REFUSAL:
            raise plain("unexpected EOF")
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            serve = partial(_joined, reader, writer, data[upgrade.args[0] :])
            return upgraded(_decoded(answer.fields), serve, writer.close)
    status = parser.get_status_code()
    if status < _ERRORS:
        raise plain(f"invalid upgrade response: status code {status}")
    headers = _decoded(answer.fields)
    with in_real_time():
        await _read_refusal(answer, parser, reader)
    if not answer.is_whole and ("content-length" in headers or "transfer-encoding" in headers):
        raise plain("unexpected EOF")
    writer.close()
    headers = {name: value for name, value in headers.items() if name not in _NOT_PASSED}
    return Response(status, headers, bytes(answer.body))


async def _read_refusal(answer: _Answer, parser: httptools.HttpResponseParser, reader: asyncio.StreamReader) -> None:
    """Read the rest of it, for _REFUSAL_S. Raises ApiError 500, OSError, HttpParserError."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_REFUSAL_S):
            while not answer.is_whole and (data := await reader.read(_PART)):
                parser.feed_data(data)
                if len(answer.body) > _MOST_REFUSAL:
                    raise plain("the answer of the server is too large")


async def _joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes, duplex: Duplex) -> None:
    """Copy bytes in both directions until one of them has ended."""
    duplex.write(first)

    async def upwards() -> None:
        while data := await duplex.read():
            writer.write(data)
            await writer.drain()

    async def downwards() -> None:
        while data := await reader.read(_PART):
            duplex.write(data)
            await duplex.drained()

    ways = [asyncio.ensure_future(way) for way in (upwards(), downwards())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        writer.close()
