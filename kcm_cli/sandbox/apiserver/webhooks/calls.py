"""HTTPS calls of webhooks: a POST with a JSON response. Errors are worded as in client-go.

Each call has its own connection. Invented addresses of the sandbox are not connected to.
"""

import asyncio
import functools
import os
import socket
import ssl
from collections.abc import Sequence
from typing import Protocol

import httptools

from kcm_cli.component.clock import in_real_time
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest import errors
from kcm_cli.rest.connection import Connection, Lost
from kcm_cli.rest.tls import bundle_fault, certified_name, connected, trusting
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.webhooks.redirects import MOST_REDIRECTS, Hop, RedirectError, redirected
from kcm_cli.sandbox.apiserver.webhooks.routes import Routes
from kcm_cli.sandbox.apiserver.webhooks.simulated_addresses import SimulatedAddresses
from kcm_cli.sandbox.apiserver.webhooks.targets import Target, TargetError, in_cluster, resolve, target_of

_USER_AGENT = "kube-apiserver-admission"
_UNTRUSTED = frozenset({7, 18, 19, 20, 21})
_EXPIRED = frozenset({9, 10})
_OTHER_NAME = frozenset({62, 64})
_MADE_UP = (
    "the address is invented by the sandbox and cannot be reached: call a Service with a route, or an address of your "
    "machine"
)


class CallError(Exception):
    """A webhook did not respond, or with an error."""


class UnusableConfig(CallError):
    """A webhook cannot be called with its clientConfig."""


class Calls(Protocol):
    """The only way of an API server to others. ``possible``: False if webhooks are left out: no write waits for one,
    and the versions of a custom kind differ in their apiVersion only."""

    routes: Routes
    possible: bool

    async def post(self, config: Tree, body: bytes, timeout_s: float) -> bytes:
        """The body of the response, which is not empty. Raises CallError."""


class NoCalls:
    """Implements ``Calls`` for a server that must not reach anything: it has nothing to connect with."""

    possible = False

    def __init__(self) -> None:
        self.routes = Routes()

    async def post(self, config: Tree, body: bytes, timeout_s: float) -> bytes:
        """Raises CallError."""
        raise CallError("this API server calls no webhooks")


class WebhookCalls:
    """Implements ``Calls``: webhooks by their clientConfig, Services by their ``routes``."""

    possible = True

    def __init__(self, store: Store, service_ranges: Sequence[str]) -> None:
        self.routes = Routes()
        self._store = store
        self._simulated = SimulatedAddresses(store, service_ranges)

    async def post(self, config: Tree, body: bytes, timeout_s: float) -> bytes:
        """The body of the response, which is not empty. Raises CallError."""
        try:
            target = target_of(config)
            _context(target.ca)
        except TargetError as error:
            raise UnusableConfig(str(error)) from None
        hop = Hop(target, f"?timeout={timeout_s:g}s", body)
        try:
            with in_real_time():
                async with asyncio.timeout(timeout_s):
                    response = await self._ask(hop)
                    for _ in range(MOST_REDIRECTS):
                        following = redirected(hop, response)
                        if following is None:
                            break
                        hop = following
                        response = await self._ask(hop)
        except TimeoutError:
            raise CallError(_failed(hop.url, "context deadline exceeded")) from None
        except RedirectError as error:
            raise CallError(_failed(error.url, str(error))) from None
        except (TargetError, OSError, httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise CallError(_failed(hop.url, _explained(error, hop.target))) from None
        if not 200 <= response.status <= 206:
            raise CallError(str(errors.from_response(response)))
        if not response.body:
            kind = response.headers.get("content-type", "application/json")
            raise CallError(f"0-length response with status code: {response.status} and content type: {kind}")
        return response.body

    async def _ask(self, hop: Hop) -> Response:
        connection = await self._connect(hop.target)
        try:
            return await connection.ask(_request(hop))
        finally:
            connection.close()

    async def _connect(self, target: Target) -> Connection:
        """Connect to the first reachable address. Raises the error of the first one."""
        host, port = resolve(target, self._store, self.routes)
        if in_cluster(host):
            raise TargetError(f"dial tcp: lookup {host}: no such host")
        try:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError):  # UnicodeError: a label is empty or too long
            raise TargetError(f"dial tcp: lookup {host}: no such host") from None
        context, name = _context(target.ca), certified_name(target.name)
        failure: OSError | None = None
        for family, _, _, _, address in found:
            shown = f"[{address[0]}]" if family == socket.AF_INET6 else address[0]
            if self._simulated.has(str(address[0])):
                failure = failure or OSError(f"dial tcp {shown}:{port}: {_MADE_UP}")
                continue
            try:
                return await connected(context, functools.partial(_opened, (str(address[0]), port), family, name))
            except ssl.SSLError:
                raise
            except OSError as error:
                failure = failure or OSError(f"dial tcp {shown}:{port}: connect: {_system_text(error)}")
        assert failure is not None
        raise failure


async def _opened(address: tuple[str, int], family: int, name: str, context: ssl.SSLContext) -> Connection:
    connecting = asyncio.get_running_loop().create_connection(
        Connection, *address, family=family, ssl=context, server_hostname=name
    )
    return (await connecting)[1]


@functools.lru_cache(maxsize=200)
def _context(ca: str) -> ssl.SSLContext:
    try:
        return trusting(ca.encode("latin-1"))
    except ValueError:
        raise TargetError(bundle_fault(ca.encode("latin-1"))) from None


def _request(hop: Hop) -> bytes:
    host = hop.target.url.split("/")[2]
    content = "" if hop.body is None else f"Content-Length: {len(hop.body)}\r\nContent-Type: application/json\r\n"
    head = (
        f"{'GET' if hop.body is None else 'POST'} {hop.target.path}{hop.query} HTTP/1.1\r\n"
        f"Host: {host}\r\n"
        f"User-Agent: {_USER_AGENT}\r\n"
        f"{content}"
        "Accept: application/json, */*\r\n"
        "Connection: close\r\n"
        "\r\n"
    )
    return head.encode() + (hop.body or b"")


def _failed(url: str, why: str) -> str:
    return f"Post {quote(url)}: {why}"


def _explained(error: Exception, target: Target) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_distrust(error, target)}"
    if isinstance(error, ssl.SSLError):
        if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return "http: server gave HTTP response to HTTPS client"
        return f"remote error: tls: {(error.reason or 'handshake failure').replace('_', ' ').lower()}"
    if isinstance(error, Lost):
        return "EOF" if error.why is None else _explained(error.why, target)
    if isinstance(error, httptools.HttpParserError | httptools.HttpParserUpgrade):
        return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response: {error}"
    if isinstance(error, OSError) and error.errno is not None:
        return _system_text(error)
    return str(error)


def _distrust(error: ssl.SSLCertVerificationError, target: Target) -> str:
    if error.verify_code in _UNTRUSTED:
        return "certificate signed by unknown authority"
    if error.verify_code in _EXPIRED:
        return "certificate has expired or is not yet valid"
    if error.verify_code in _OTHER_NAME:
        return f"certificate is not valid for {target.name}"
    return error.verify_message


def _system_text(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
