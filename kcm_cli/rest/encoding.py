"""Encodes HTTP/1.1 requests."""

import re
from functools import lru_cache
from urllib.parse import quote, unquote, urlencode, urlsplit

from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.rest.access import Access
from kcm_cli.rest.credentials import basic
from kcm_cli.rest.transport import Request, Unreachable

_SAFE_PATH = "/:@!$&'()*+,;=-._~"
_NEEDS_NO_QUOTES = re.compile(rf"[\w{re.escape(_SAFE_PATH)}]*", re.ASCII)
_ZONE = re.compile("%[^]]*")
"""The zone of an IPv6 address, which says nothing to others."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Encoder:
    """Encodes requests to one server."""

    def __init__(self, access: Access) -> None:
        url = urlsplit(access.server)
        host = _ZONE.sub("", url.netloc.rpartition("@")[2])
        self._prefix = quote(unquote(url.path), safe=_SAFE_PATH)
        fixed = [("host", host), ("accept-encoding", "identity"), *access.impersonation]
        if access.proxy.startswith(("http://", "https://")) and url.scheme == "http":
            self._prefix = f"http://{host}{self._prefix}"
            fixed += authorization(access.proxy)
        self._fixed = "".join(f"{name}: {_single(name, value)}\r\n" for name, value in fixed)

    def encode(self, request: Request) -> bytes:
        """Head and body. Raises Unreachable for a header that cannot be sent."""
        path = request.path
        path = self._prefix + (path if _NEEDS_NO_QUOTES.fullmatch(path) else quote(path, safe=_SAFE_PATH))
        if request.query:
            path = f"{path}?{urlencode(request.query)}"
        lines = _lines(tuple(request.headers.items()))
        if request.body or request.method in _WITH_BODY:
            lines = f"{lines}content-length: {len(request.body)}\r\n"
        return f"{request.method} {path} HTTP/1.1\r\n{self._fixed}{lines}\r\n".encode() + request.body


def connect(host: str, port: int, proxy: str) -> bytes:
    """The CONNECT request that asks a proxy for a tunnel."""
    target = host_and_port(host, port)
    lines = "".join(f"{name}: {value}\r\n" for name, value in authorization(proxy))
    return f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{lines}\r\n".encode()


def authorization(proxy: str) -> list[tuple[str, str]]:
    """The header for the user that a proxy's URL names, if it names one."""
    url = urlsplit(proxy)
    if url.username is None:
        return []
    return [("proxy-authorization", basic(unquote(url.username), unquote(url.password or "")))]


@lru_cache(256)
def _lines(headers: tuple[tuple[str, str], ...]) -> str:
    """Encoded headers, cached: nearly all requests of a client have the same."""
    return "".join([f"{name}: {_single(name, value)}\r\n" for name, value in headers])


def _single(name: str, value: str) -> str:
    if "\n" in value or "\r" in value or "\0" in value:
        raise Unreachable(f"the header {name} cannot be sent: its value holds a line break")
    return value
