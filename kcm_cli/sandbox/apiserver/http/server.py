"""The server of the sandbox: its TLS, and the form of requests and answers."""

import asyncio
import gzip
import re
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, unquote

from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL

from kcm_cli.component import key_pairs
from kcm_cli.component.clock import Clock, RealClock
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.serving.connection import Handler, Received
from kcm_cli.serving.connection_limits import ConnectionLimits, Limits
from kcm_cli.serving.server import HttpServer
from kcm_cli.serving.tls_transport import server_context

LIMITS = Limits(1024, all_head_bytes=4 << 20, sweep_s=5.0)
GZIP_BYTES = 128 * 1024
_GZIP_LEVEL = 1
_FIRST_COUNTS = frozenset(("authorization", "content-type"))
"""Headers of which the first one is used, if they are repeated."""
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_NO_QUERY: tuple[tuple[str, str], ...] = ()

Handle = Callable[[Request, bytes | None], Awaitable[Response | Stream]]
"""Answers a request of a client with this certificate (DER)."""


def tls_context(certificates: Certificates, client_cas: bytes = b"") -> SSL.Context:
    """A context with the cluster's serving certificate. Client certificates are verified with each request.

    client_cas: PEM of the authorities that are named to clients, in addition to the cluster's. Raises NoCallbacksError.
    """
    context = server_context(key_pairs.certificates(certificates.ca.certificate + client_cas))
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.use_certificate(key_pairs.chain(certificates.serving.certificate)[0])
    key = key_pairs.pair_key(certificates.serving.key)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    context.use_privatekey(key)
    return context


def http_server(handle: Handle, clock: Clock, limits: Limits = LIMITS) -> HttpServer:
    """A server that answers by this function. clock: the sandbox's; clients are limited by the real one."""

    def handler(certificates: tuple[bytes, ...]) -> Handler:
        peer = next(iter(certificates), None)

        async def answer(received: Received) -> Response | Stream:
            request = _request(received)
            return await _compressed(request, await handle(request, peer))

        return answer

    return HttpServer(handler, ConnectionLimits(limits, RealClock()), clock)


async def _compressed(request: Request, answer: Response | Stream) -> Response | Stream:
    """A large answer, with gzip if the client accepts it."""
    if not isinstance(answer, Response) or len(answer.body) < GZIP_BYTES:
        return answer
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return answer
    body = await asyncio.to_thread(gzip.compress, answer.body, _GZIP_LEVEL)
    varies = ["Accept-Encoding", answer.headers["vary"]] if "vary" in answer.headers else ["Accept-Encoding"]
    return Response(answer.status, {**answer.headers, "content-encoding": "gzip", "vary": "\n".join(varies)}, body)


def _request(received: Received) -> Request:
    path, _, text = received.target.decode("latin-1").partition("?")
    if not path.startswith(("/", "*")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    headers = _headers(received)
    if received.method != "PATCH" and not headers.get("content-type", "a").islower():
        headers["content-type"] = headers["content-type"].lower()
    query = tuple(parse_qsl(_readable(text), keep_blank_values=True)) if text else _NO_QUERY
    return Request(received.method, unquote(path) if "%" in path else path, query, headers, received.body)


def _headers(received: Received) -> dict[str, str]:
    """The headers by their name in lower case; repeated ones are joined."""
    found: dict[str, str] = {}
    for name, value in received.headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = found.get(key)
        if known is None:
            found[key] = text
        elif key not in _FIRST_COUNTS:
            found[key] = f"{known}\n{text}" if key.startswith("impersonate-") else f"{known}, {text}"
    return found


def _readable(query: str) -> str:
    """The query without the parameters that Go ignores: those with a semicolon or an invalid escape."""
    if ";" not in query and not _BAD_ESCAPE.search(query):
        return query
    return "&".join(part for part in query.split("&") if ";" not in part and not _BAD_ESCAPE.search(part))
