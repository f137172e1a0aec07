"""The server: sockets, TLS, requests, graceful shutdown."""

import asyncio
import gzip
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from email.utils import format_datetime
from functools import partial
from urllib.parse import parse_qsl, unquote

from OpenSSL import SSL

from kcm_cli.component import key_pairs
from kcm_cli.component.clock import Clock, RealClock
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.serving.connection import Handler, HttpConnection, Received
from kcm_cli.serving.connection_limits import ConnectionLimits, Limits, Slot
from kcm_cli.serving.fair_queue import REQUESTS, FairQueue
from kcm_cli.serving.secure_listener import Listener, SecureListener
from kcm_cli.serving.tls_transport import server_context, show_certificate, use_key

_RECEIVED_BYTES = 32 * 1024
LIMITS = Limits(1024, all_head_bytes=4 << 20, sweep_s=5.0)
GZIP_BYTES = 128 * 1024
_GZIP_LEVEL = 1
_FIRST_COUNTS = frozenset(("authorization", "content-type", "impersonate-user", "impersonate-uid"))
"""Headers of which the first one is used, if they are repeated."""
_IMPERSONATES = "impersonate-"
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_ZERO = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")
_NO_QUERY: tuple[tuple[str, str], ...] = ()

Handle = Callable[[Request, bytes | None], Awaitable[Response | Stream]]
"""Answers a request of a client with this certificate (DER)."""


def tls_context(certificates: Certificates, client_cas: bytes = b"") -> SSL.Context:
    """A context with the cluster's serving certificate. Client certificates are verified with each request.

    client_cas: PEM of the authorities that are named to clients, in addition to the cluster's. Raises NoCallbacksError.
    """
    context = server_context(key_pairs.certificates(certificates.ca.certificate + client_cas))
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    show_certificate(context, key_pairs.chain(certificates.serving.certificate))
    use_key(context, key_pairs.pair_key(certificates.serving.key))
    return context


class HttpServer:
    """Serves a handler on bound sockets, within limits. ``start``, then ``stop`` once."""

    def __init__(self, handle: Handle, clock: Clock, limits: Limits = LIMITS, apart: tuple[str, ...] = ()) -> None:
        """apart: prefixes of headers whose repetitions are joined by newlines, beside those of impersonation."""
        self._handle = handle
        self._apart = (_IMPERSONATES, *apart)
        self.queue = FairQueue(most=REQUESTS)
        self.limits = ConnectionLimits(limits, RealClock())
        self.open: set[HttpConnection] = set()
        self._clock = clock
        self._listeners: list[Listener] = []
        self._date: tuple[int, str] = (0, "")

    def handler(self, certificates: tuple[bytes, ...]) -> Handler:
        """The handler of a connection's requests."""
        handle, peer = self._handle, next(iter(certificates), None)

        async def handler(received: Received) -> Response | Stream:
            request = _request(received, self._apart)
            return await _compressed(request, await handle(request, peer))

        return handler

    async def start(self, sockets: Sequence[socket.socket], context: SSL.Context | None) -> None:
        """Accept connections. Without a context they use plain HTTP."""
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
            if context is None:
                make: Callable[[Slot], asyncio.BaseProtocol] = partial(HttpConnection, self)
            else:
                make = SecureListener(self.limits, lambda _: context, partial(HttpConnection, self)).connection
            self._listeners.append(Listener(one, self.limits, make))

    async def stop(self, patience_s: float) -> None:
        """Stop accepting connections, wait up to ``patience_s`` for requests except streams, and close all."""
        for listener in self._listeners:
            listener.close()
        deadline = self._clock.monotonic() + patience_s
        for connection in list(self.open):
            connection.shutdown()
        while any(c.busy for c in self.open) and self._clock.monotonic() < deadline:
            await self._clock.sleep(0.02)
        for connection in list(self.open):
            connection.abort()
        self.limits.close()
        await self._clock.sleep(0)

    def date(self) -> str:
        """The current Date header, formatted once a second."""
        second = int(self._clock.monotonic())
        if self._date[0] != second:
            self._date = (second, format_datetime(self._clock.now(), usegmt=True))
        return self._date[1]


async def _compressed(request: Request, answer: Response | Stream) -> Response | Stream:
    """A large answer, with gzip if the client accepts it."""
    if not isinstance(answer, Response) or len(answer.body) < GZIP_BYTES:
        return answer
    if not _accepts_gzip(request):
        return answer
    body = await asyncio.to_thread(gzip.compress, answer.body, _GZIP_LEVEL)
    varies = ["Accept-Encoding", answer.headers["vary"]] if "vary" in answer.headers else ["Accept-Encoding"]
    return Response(answer.status, {**answer.headers, "content-encoding": "gzip", "vary": "\n".join(varies)}, body)


def _accepts_gzip(request: Request) -> bool:
    """Whether the client accepts gzip. For objects it has to say so without a weight, as upstream.

    upstream: apiserver pkg/endpoints/handlers/responsewriters/writers.go#negotiateContentEncoding
    """
    accepted = [part.strip() for part in request.headers.get("accept-encoding", "").split(",")]
    if "gzip" in accepted:
        return True
    weighted = (part.partition(";")[::2] for part in accepted if not request.path.startswith("/api"))
    return any(name.strip() == "gzip" and not _ZERO.fullmatch(weight) for name, weight in weighted)


def _request(received: Received, apart: tuple[str, ...]) -> Request:
    path, _, text = received.target.decode("latin-1").partition("?")
    if not path.startswith(("/", "*")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    headers = _headers(received, apart)
    if received.method != "PATCH" and not headers.get("content-type", "a").islower():
        headers["content-type"] = headers["content-type"].lower()
    query = tuple(parse_qsl(_readable(text), keep_blank_values=True)) if text else _NO_QUERY
    path = unquote(path) if "%" in path else path
    return Request(received.method, path, query, headers, received.body, sent_query=text, address=received.address)


def _headers(received: Received, apart: tuple[str, ...]) -> dict[str, str]:
    """The headers by their name in lower case; repeated ones are joined, those of ``apart`` by newlines."""
    found: dict[str, str] = {}
    for name, value in received.headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = found.get(key)
        if known is None:
            found[key] = text
        elif key not in _FIRST_COUNTS:
            found[key] = f"{known}\n{text}" if key.startswith(apart) else f"{known}, {text}"
    return found


def _readable(query: str) -> str:
    """The query without the parameters that Go ignores: those with a semicolon or an invalid escape."""
    if ";" not in query and not _BAD_ESCAPE.search(query):
        return query
    return "&".join(part for part in query.split("&") if ";" not in part and not _BAD_ESCAPE.search(part))
