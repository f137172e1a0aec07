"""Proxies of pods and Services: a request is passed on to the server that stands for a port, and its response back.

Bodies and redirects are not rewritten.

upstream: staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, pkg/registry/core/{pod,service}
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from urllib.parse import quote, urlencode

import httptools

from kcm_cli.component.clock import in_real_time
from kcm_cli.rest.connection import Connection, Incoming
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.types import ApiError

_CONNECT_S = 30.0
_NOT_PASSED = frozenset((
    "authorization", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
))  # fmt: skip
"""Headers of one connection, and the credentials."""


def unavailable(why: str) -> ApiError:
    """503: no server can be reached."""
    return ApiError(503, "ServiceUnavailable", why)


async def passed_on(request: Request, path: str, where: tuple[str, int], *, secure: bool) -> Response | Stream:
    """The response of a server. path: what is left of the request's path. secure: whether the server speaks TLS, whose
    certificate is not verified. Raises ApiError 503."""
    host, port = where
    context = ssl.create_default_context() if secure else None
    if context is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with in_real_time():
            async with asyncio.timeout(_CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection, host, port, ssl=context, server_hostname=host if secure else None
                )
    except (OSError, TimeoutError) as error:
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        why = os.strerror(error.errno).lower() if error.errno is not None else str(error) or "i/o timeout"
        raise unavailable(f"error trying to reach service: dial tcp {shown}: connect: {why}") from None
    data = _request(request, path, f"{host}:{port}")
    try:
        if request.method == "HEAD":
            try:
                found = await connection.ask(data, bodiless=True)
            finally:
                connection.close()
            return Response(found.status, _headers(dict(found.headers)), b"")
        incoming = await connection.open(data)
    except (ConnectionError, httptools.HttpParserError) as error:
        connection.close()
        raise unavailable(f"error trying to reach service: {error}") from None
    except BaseException:
        connection.close()
        raise
    return Stream(incoming.status, _headers(dict(incoming.headers)), _body(connection, incoming))


async def _body(connection: Connection, incoming: Incoming) -> AsyncIterator[bytes]:
    try:
        while data := await incoming.read():
            yield data
    finally:
        connection.close()


def _request(request: Request, path: str, host: str) -> bytes:
    query = f"?{urlencode(request.query)}" if request.query else ""
    lines = [f"{request.method} {quote(path, safe=_SAFE)}{query} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name.lower() not in _NOT_PASSED]
    lines += [f"X-Forwarded-Uri: {quote(request.path, safe=_SAFE)}", "X-Forwarded-Proto: https", "Connection: close"]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(request.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + request.body


_SAFE = "/:@!$&'()*+,;=~-._"


def _headers(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED}
