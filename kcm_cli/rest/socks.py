"""Asks a SOCKS5 proxy for a tunnel to a server, whose name the proxy resolves.

RFC 1928, and RFC 1929 for users with a password.
"""

import asyncio
import ipaddress
import socket

_VERSION, _CONNECT, _PASSWORDS = 5, 1, 1
_OPEN, _PASSWORD, _NO_METHOD = 0, 2, 255
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REPLIES = {
    1: "General SOCKS server failure",
    2: "Connection not allowed by ruleset",
    3: "Network unreachable",
    4: "Host unreachable",
    5: "Connection refused by destination host",
    6: "TTL expired",
    7: "Command not supported",
    8: "Address type not supported",
}


class ProxyRefused(Exception):
    """The proxy refused the tunnel."""


class ProxyUnreachable(Exception):
    """There is no connection to the proxy. url: the proxy's, without its password. why: the error of the connection."""

    def __init__(self, url: str, why: OSError) -> None:
        super().__init__(url, why)
        self.url, self.why = url, why


async def tunnel(made: socket.socket, host: str, port: int, user: tuple[str, str] | None) -> None:
    """Make a connection to a proxy one to the server. user: name and password, for proxies that want them.

    Raises ProxyRefused, OSError, and ValueError where the name of server or user, or the password, cannot be sent.
    """
    request = bytes([_VERSION, _CONNECT, 0]) + _address(host) + port.to_bytes(2, "big")
    password = b"" if user is None else bytes([_PASSWORDS]) + _text(user[0], "utf-8") + _text(user[1], "utf-8")
    methods = bytes([_OPEN]) if user is None else bytes([_OPEN, _PASSWORD])
    version, method = await _ask(made, bytes([_VERSION, len(methods)]) + methods)
    _check(version)
    if method == _NO_METHOD:
        raise ProxyRefused("No acceptable authentication methods were offered")
    if method not in methods:
        raise ProxyRefused(f"Unexpected SOCKS authentication method: {method}")
    if method == _PASSWORD and await _ask(made, password) != bytes([_PASSWORDS, 0]):
        raise ProxyRefused("Username and password authentication failure")
    version, reply = await _ask(made, request)
    _check(version)
    if reply != 0:
        raise ProxyRefused(_REPLIES.get(reply, f"Invalid reply code: {reply}"))
    _, kind = await _read(made, 2)
    if kind not in (_IPV4, _NAME, _IPV6):
        raise ProxyRefused(f"Invalid address type: {kind}")
    length = (await _read(made, 1))[0] if kind == _NAME else 4 if kind == _IPV4 else 16
    await _read(made, length + 2)


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bytes([_NAME]) + _text(host, "idna")
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed


def _text(text: str, encoding: str) -> bytes:
    encoded = text.encode(encoding)
    return bytes([len(encoded)]) + encoded


def _check(version: int) -> None:
    if version != _VERSION:
        raise ProxyRefused(f"Unexpected SOCKS version number: {version}")


async def _ask(made: socket.socket, message: bytes) -> bytes:
    """Send a message; the first two bytes of the answer."""
    await asyncio.get_running_loop().sock_sendall(made, message)
    return await _read(made, 2)


async def _read(made: socket.socket, count: int) -> bytes:
    loop, found = asyncio.get_running_loop(), b""
    while len(found) < count:
        part = await loop.sock_recv(made, count - len(found))
        if not part:
            raise ProxyRefused("Connection closed unexpectedly")
        found += part
    return found
