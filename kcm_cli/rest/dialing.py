"""Opens connections to one API server, over TLS and through proxies.

Addresses are tried in parallel (happy eyeballs), dead peers are detected, and HTTP and SOCKS5 proxies tunnel.

upstream: staging/src/k8s.io/client-go/transport
"""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from urllib.parse import SplitResult, unquote, urlsplit

import aiohappyeyeballs

from kcm_cli.component import threads
from kcm_cli.component.clock import Clock
from kcm_cli.rest.access import Access
from kcm_cli.rest.connection import Connection
from kcm_cli.rest.encoding import connect
from kcm_cli.rest.metrics import NO_SESSION_METRICS, SessionMetrics
from kcm_cli.rest.proxies import shown
from kcm_cli.rest.socks import ProxyRefused, ProxyUnreachable, tunnel
from kcm_cli.rest.tls import Resuming, certified_name, connected, trusting

_STAGGER_S = 0.3
_SOCKS = ("socks5", "socks5h")
_PROBES = tuple(
    (int(getattr(socket, name)), value)
    for name, value in (
        ("TCP_KEEPIDLE", 30),
        ("TCP_KEEPALIVE", 30),  # macOS' name for it
        ("TCP_KEEPINTVL", 15),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 45_000),
    )
    if hasattr(socket, name)
)
_AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[str | int, ...]]


class Dialer:
    """``dial`` opens a connection for requests to the server."""

    def __init__(self, access: Access, clock: Clock, metrics: SessionMetrics = NO_SESSION_METRICS) -> None:
        self._clock = clock
        self._metrics = metrics
        self._server = urlsplit(access.server)
        self._proxy = urlsplit(access.proxy) if access.proxy else None
        self._name = access.server_name or _host_port(self._server)[0]
        self._lookups: dict[tuple[str, int], asyncio.Future[Sequence[aiohappyeyeballs.AddrInfoType]]] = {}

    async def dial(self, context: ssl.SSLContext | None) -> Connection:
        """Raises OSError (ssl.SSLError and socket.gaierror are such), ProxyRefused or ProxyUnreachable."""
        return await (self._dial(None) if context is None else connected(context, self._dial))

    async def _dial(self, context: ssl.SSLContext | None) -> Connection:
        if self._proxy is None:
            return await self._connected(self._server, context, self._name)
        if self._proxy.scheme in _SOCKS:
            return await self._over(await self._through_socks(self._proxy), context, self._name)
        tls = (context or trusting(b"")) if self._proxy.scheme == "https" else None
        with _to_proxy(self._proxy):
            connection = await self._connected(self._proxy, tls, _host_port(self._proxy)[0])
        if context is not None:
            try:
                await self._tunnel(connection, self._proxy, context)
            except BaseException:
                connection.close()
                raise
        return connection

    async def _tunnel(self, connection: Connection, proxy: SplitResult, context: ssl.SSLContext) -> None:
        host, port = _host_port(self._server)
        answer = await connection.ask(connect(host, port, proxy.geturl()), bodiless=True)
        if answer.status != 200:
            raise ProxyRefused(f"it answered {answer.status}")
        loop = asyncio.get_running_loop()
        name = certified_name(self._name)
        inner = await loop.start_tls(connection.transport, connection, context, server_hostname=name)
        assert inner is not None
        connection.connection_made(inner)
        connection.used = False

    async def _through_socks(self, proxy: SplitResult) -> socket.socket:
        """A socket to the server by way of a SOCKS5 proxy, which resolves the server's name."""
        user = (unquote(proxy.username), unquote(proxy.password or "")) if proxy.username else None
        with _to_proxy(proxy):
            made = await self._opened(_host_port(proxy)[0], proxy.port or 1080)
        try:
            await tunnel(made, *_host_port(self._server), user)
        except ValueError as error:  # each has a byte for its length
            made.close()
            raise ProxyRefused("the user, the password or the server's name cannot be sent to it") from error
        except BaseException:
            made.close()
            raise
        return made

    async def _connected(self, url: SplitResult, context: ssl.SSLContext | None, name: str) -> Connection:
        return await self._over(await self._opened(*_host_port(url)), context, name)

    async def _opened(self, host: str, port: int) -> socket.socket:
        loop = asyncio.get_running_loop()
        found = await self._resolved(host, port)
        return await aiohappyeyeballs.start_connection(
            found, happy_eyeballs_delay=_STAGGER_S, interleave=1, loop=loop, socket_factory=_socket
        )

    async def _over(self, made: socket.socket, context: ssl.SSLContext | None, name: str) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            known_as = certified_name(name) if context is not None else None
            _, connection = await loop.create_connection(Connection, sock=made, ssl=context, server_hostname=known_as)
        except BaseException as error:
            if isinstance(error, ssl.SSLError) and isinstance(context, Resuming):
                context.resumes = False
            made.close()
            raise
        return connection

    async def _resolved(self, host: str, port: int) -> Sequence[aiohappyeyeballs.AddrInfoType]:
        """Raises OSError. One lookup of a name at a time, however many wait for it: it may take minutes."""
        if _is_address(host):
            return _addresses(host, port)  # without DNS
        lookup = self._lookups.get((host, port))
        if lookup is None:
            lookup = self._lookups[host, port] = self._look_up(host, port)
        return await asyncio.shield(lookup)

    def _look_up(self, host: str, port: int) -> "asyncio.Future[Sequence[aiohappyeyeballs.AddrInfoType]]":
        """On a thread that may be left behind: a process would wait for those of the loop's executor at its end. Raises
        OSError where there can be none."""
        loop, started = asyncio.get_running_loop(), self._clock.monotonic()
        lookup: asyncio.Future[Sequence[aiohappyeyeballs.AddrInfoType]] = loop.create_future()

        def ended(found: Sequence[aiohappyeyeballs.AddrInfoType], error: OSError | None) -> None:
            del self._lookups[host, port]
            self._metrics.resolved(host, self._clock.monotonic() - started)
            if error is None:
                lookup.set_result(found)
            else:
                lookup.set_exception(error)
                lookup.exception()  # perhaps nobody waits for it any more

        def ask() -> None:
            found: Sequence[aiohappyeyeballs.AddrInfoType] = ()
            error: OSError | None = None
            try:
                found = _addresses(host, port)
            except OSError as failure:
                error = failure
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(ended, found, error)

        threads.start(threading.Thread(target=ask, name=f"lookup of {host}", daemon=True))
        return lookup


@contextlib.contextmanager
def _to_proxy(proxy: SplitResult) -> Iterator[None]:
    """Errors of the connection within are those of the proxy's."""
    try:
        yield
    except OSError as error:
        raise ProxyUnreachable(shown(proxy.geturl()), error) from error


def _addresses(host: str, port: int) -> Sequence[aiohappyeyeballs.AddrInfoType]:
    """Raises OSError."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as failure:  # a label is empty, or too long
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is no name of a host: {failure}") from None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host_port(url: SplitResult) -> tuple[str, int]:
    """The host may have a zone, as in [fe80::1%25eth0]."""
    return unquote(url.hostname or ""), url.port or (443 if url.scheme == "https" else 80)


def _socket(address: _AddressInfo) -> socket.socket:
    """A socket that detects a dead peer within a minute, as client-go's HTTP/2 pings do."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _PROBES:
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
