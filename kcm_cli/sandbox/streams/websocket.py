"""The server's side of WebSockets, without I/O: the handshake, and messages to and from bytes (RFC 6455)."""

import base64
import hashlib
import re
import struct
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kcm_cli.rest.transport import Response

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BEARER = "base64url.bearer.authorization.k8s.io."
_BASE64_URL = re.compile("[A-Za-z0-9_-]*")
_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_MOST_BYTES = 1 << 20
_ORIGIN = re.compile("(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")
_NORMAL, PROTOCOL_ERROR, TOO_LARGE = 1000, 1002, 1009


class WebSocketError(Exception):
    """The client violates the protocol. ``code``: the close code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def asked(headers: Mapping[str, str]) -> bool:
    """Whether a request is an upgrade to a WebSocket."""
    return headers.get("upgrade", "").lower() == "websocket" and "upgrade" in headers.get("connection", "").lower()


def protocols(headers: Mapping[str, str]) -> list[str]:
    """The subprotocols that the client offers, in its order of preference."""
    return [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",") if each.strip()]


def bearer(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """The token among the subprotocols, where browsers send it, and the other subprotocols; None without a token.

    Raises ValueError if there are several tokens, no other subprotocol, or invalid base64.

    upstream: apiserver pkg/authentication/request/websocket/protocol.go
    """
    offered = protocols(headers)
    tokens = [each.removeprefix(_BEARER) for each in offered if each.startswith(_BEARER)]
    others = [each for each in offered if not each.startswith(_BEARER)]
    if not tokens or not asked(headers):
        return None
    if len(tokens) > 1 or not others:
        raise ValueError("one token, and a protocol beside it")
    if not _BASE64_URL.fullmatch(tokens[0]):
        raise ValueError("no base64 without padding")
    return base64.urlsafe_b64decode(tokens[0] + "=" * (-len(tokens[0]) % 4)).decode(), ", ".join(others)


def chosen(headers: Mapping[str, str], known: Sequence[str]) -> str | None:
    """The first of the client's subprotocols that is known; None if it offers only others, empty if it offers none."""
    offered = protocols(headers)
    return next((each for each in offered if each in known), None if offered else "")


def answer_headers(headers: Mapping[str, str], protocol: str) -> dict[str, str]:
    """The headers of a response 101."""
    key = headers.get("sec-websocket-key", "")
    accept = base64.b64encode(hashlib.sha1(f"{key}{_MAGIC}".encode(), usedforsecurity=False).digest()).decode()
    found = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-accept": accept}
    return {**found, "sec-websocket-protocol": protocol} if protocol else found


def refusal(headers: Mapping[str, str]) -> Response | None:
    """The error response to an invalid handshake of a watch, as that of golang.org/x/net/websocket."""
    if not headers.get("sec-websocket-key"):
        return Response(400, {}, b"mismatch challenge/response")
    if headers.get("sec-websocket-version") != "13":
        return Response(400, {"sec-websocket-version": "13"}, b"missing or bad WebSocket Version")
    if not _ORIGIN.match(headers.get("origin", "")):
        return Response(403, {}, b"")
    return Response(400, {}, b"") if len(protocols(headers)) > 1 else None


def message(data: bytes) -> bytes:
    """A binary message."""
    return _frame(_BINARY, data)


def text(data: bytes) -> bytes:
    """A text message. ``data`` is UTF-8."""
    return _frame(_TEXT, data)


def close() -> bytes:
    """A close frame."""
    return _frame(_CLOSE, struct.pack(">H", _NORMAL))


def _frame(kind: int, data: bytes) -> bytes:
    size = len(data)
    if size < 126:
        head = struct.pack(">BB", 0x80 | kind, size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", 0x80 | kind, 126, size)
    else:
        head = struct.pack(">BBQ", 0x80 | kind, 127, size)
    return head + data


class Reader(msgspec.Struct):
    """Pass received bytes to ``receive``, and send ``replies`` after it. ``closed``: the client has sent a close
    frame."""

    replies: bytearray = msgspec.field(default_factory=bytearray)
    closed: bool = False
    _rest: bytearray = msgspec.field(default_factory=bytearray)
    _parts: bytearray = msgspec.field(default_factory=bytearray)

    def receive(self, data: bytes) -> Iterator[bytes]:
        """The messages that these bytes complete. Raises WebSocketError."""
        self._rest += data
        while not self.closed and (found := self._next()) is not None:
            first, payload = found
            kind = first & 0x0F
            if kind == _PING:
                self.replies += _frame(_PONG, payload)
            elif kind == _CLOSE:
                self.closed = True
            elif kind in (_CONTINUED, _TEXT, _BINARY):
                self._parts += payload
                if len(self._parts) > _MOST_BYTES:
                    raise WebSocketError(TOO_LARGE, "a message is too large")
                if first & 0x80:
                    whole, self._parts = bytes(self._parts), bytearray()
                    yield whole
            elif kind != _PONG:
                raise WebSocketError(PROTOCOL_ERROR, f"kind {kind} of frames is not known")

    def _next(self) -> tuple[int, bytes] | None:
        rest = self._rest
        if len(rest) < 2:
            return None
        size, at = rest[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(rest) < 2 + width:
                return None
            size, at = int.from_bytes(rest[2 : 2 + width], "big"), 2 + width
        if size > _MOST_BYTES:
            raise WebSocketError(TOO_LARGE, "a frame is too large")
        if not rest[1] & 0x80:
            raise WebSocketError(PROTOCOL_ERROR, "frames of clients are masked")
        if len(rest) < at + 4 + size:
            return None
        mask, masked = bytes(rest[at : at + 4]), bytes(rest[at + 4 : at + 4 + size])
        first = rest[0]
        del rest[: at + 4 + size]
        if not size:
            return first, b""
        repeated = (mask * (size // 4 + 1))[:size]
        return first, (int.from_bytes(masked, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
