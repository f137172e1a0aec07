"""A request to port 10257, as its handlers read it.

upstream: net/http/request.go
"""

import re
from urllib.parse import parse_qsl, unquote

import msgspec

from kcm_cli.manager.server.peer import Peer
from kcm_cli.serving.connection import Received

_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
"""At the beginning of a target that is meant for a proxy."""


class Pairs(tuple[tuple[str, str], ...]):
    """Names and values, in order: a name may be there more than once."""

    __slots__ = ()

    def first(self, name: str) -> str:
        """The first value of a name, which counts in Go; empty without one."""
        return next((value for key, value in self if key == name), "")

    def every(self, name: str) -> tuple[str, ...]:
        """All values of a name."""
        return tuple(value for key, value in self if key == name)

    def has(self, name: str) -> bool:
        """Whether the name is there."""
        return any(key == name for key, _ in self)


class Request(msgspec.Struct, frozen=True):
    """A request. path: decoded. target: path and query as they were sent. headers: with names in lower case.

    peer: the certificate of the client, if it has a usable one.
    """

    method: str
    path: str
    target: str
    query: Pairs = Pairs()
    headers: Pairs = Pairs()
    body: bytes = b""
    peer: Peer | None = None


def request_of(received: Received, peer: Peer | None = None) -> Request:
    """The request that a connection has received."""
    target = _AUTHORITY.sub("", received.target.decode("latin-1"), count=1)
    path, mark, query = target.partition("?")
    if received.method == "CONNECT":
        path = ""  # the target is a host
    elif path != "*" and not path.startswith("/"):
        path = f"/{path}"
    return Request(
        received.method,
        unquote(path),
        f"{path}{mark}{query}",
        Pairs(parse_qsl(query, keep_blank_values=True)),
        Pairs((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in received.headers),
        received.body,
        peer,
    )
