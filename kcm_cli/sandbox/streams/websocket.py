"""The server's side of WebSockets, without I/O: the handshake, and messages to and from bytes (RFC 6455)."""

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kcm_cli.rest.transport import Response

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BEARER = "base64url.bearer.authorization.k8s.io."
_BASE64_URL = re.compile("[A-Za-z0-9_-]*")
_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_MOST_BYTES = 32 << 20
"""The limit for a message, as that of kubelets (``DefaultMaxPayloadBytes`` of golang.org/x/net/websocket)."""
_MOST_CONTROL = 125
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


class Part(NamedTuple):
    """A part of a message. ``first``: it begins the message."""

    data: bytes
    first: bool


class Reader(msgspec.Struct):
    """Pass received bytes to ``receive``, and send ``replies`` after it. ``closed``: the client has sent a close
    frame. No more than a head and a control frame are kept, however long a message is."""

    replies: bytearray = msgspec.field(default_factory=bytearray)
    closed: bool = False
    _rest: bytearray = msgspec.field(default_factory=bytearray)
    _left: int = 0
    """The bytes that the current frame still has."""
    _mask: bytes = b""
    _final: bool = True
    """Whether the current frame is the last one of its message."""
    _size: int = 0
    """The bytes of the current message so far."""
    _open: bool = False
    """Whether a message has begun."""

    def receive(self, data: bytes) -> Iterator[Part]:
        """The parts of messages in these bytes, as they come. Raises WebSocketError."""
        self._rest += data
        while not self.closed and (self._left or self._begin()):
            if self._left:
                if not self._rest:
                    return
                yield self._taken()
            elif not self._open:  # an empty message
                yield Part(b"", True)
            if not self._left:
                self._open = not self._final

    def _begin(self) -> bool:
        """Read the head of the next frame with data, and control frames before it; returns whether there is one."""
        while not self.closed and (head := self._head()) is not None:
            first, size, at = head
            kind = first & 0x0F
            if kind in (_CONTINUED, _TEXT, _BINARY):
                whole = size + (self._size if self._open else 0)
                if whole > _MOST_BYTES:
                    raise WebSocketError(TOO_LARGE, "a message is too large")
                if len(self._rest) < at + 4:
                    return False
                self._size, self._mask = whole, bytes(self._rest[at : at + 4])
                self._left, self._final = size, bool(first & 0x80)
                del self._rest[: at + 4]
                return True
            if kind not in (_CLOSE, _PING, _PONG) or size > _MOST_CONTROL:
                raise WebSocketError(PROTOCOL_ERROR, f"kind {kind} of frames with {size} bytes is not known")
            if len(self._rest) < at + 4 + size:
                return False
            mask, masked = bytes(self._rest[at : at + 4]), bytes(self._rest[at + 4 : at + 4 + size])
            del self._rest[: at + 4 + size]
            if kind == _PING:
                self.replies += _frame(_PONG, _unmasked(mask, masked))
            self.closed = kind == _CLOSE
        return False

    def _taken(self) -> Part:
        """The bytes of the current frame that are there."""
        masked = bytes(self._rest[: self._left])
        del self._rest[: len(masked)]
        part = Part(_unmasked(self._mask, masked), not self._open)
        turn = len(masked) % 4
        self._mask, self._left, self._open = self._mask[turn:] + self._mask[:turn], self._left - len(masked), True
        return part

    def _head(self) -> tuple[int, int, int] | None:
        """The first byte of the next frame, its size, and where its mask begins; None if it is not complete. Raises
        WebSocketError."""
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
        return rest[0], size, at


_DIGIT, _ASCII, _BYTE = ord("0"), 1 << 7, 1 << 8
_QUAD = 4
"""The characters of base64 that are decoded together."""


def is_text(protocol: str) -> bool:
    """Whether a subprotocol's messages are text: a digit for the channel, and base64."""
    return "base64" in protocol


def most_channels(protocol: str) -> int:
    """How many channels the first character of a message tells apart."""
    return _ASCII - _DIGIT if is_text(protocol) else _BYTE


def of_channel(protocol: str, channel: int, data: bytes) -> bytes:
    """A message of a channel."""
    if is_text(protocol):
        return text(bytes([_DIGIT + channel]) + base64.b64encode(data))
    return message(bytes([channel]) + data)


class ChannelReader(Reader):
    """A reader of messages of channels. ``text``: see ``is_text``."""

    text: bool = False
    _channel: int = -1
    _quad: bytes = b""
    """The characters of a message that are not decoded yet."""

    def channels(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The channels and their bytes, as they come. Raises WebSocketError."""
        for part in self.receive(data):
            sent = part.data
            if part.first:
                self._channel, self._quad = -1, b""
            if self._channel < 0 and sent:
                self._channel, sent = (sent[0] - (_DIGIT if self.text else 0)) % _BYTE, sent[1:]
            if self.text:
                sent = self._decoded(sent)
            if sent:
                yield self._channel, sent

    def _decoded(self, data: bytes) -> bytes:
        """The bytes; none where they are not base64, as upstream, which skips line breaks."""
        data = self._quad + data.translate(None, b"\r\n")
        whole = len(data) // _QUAD * _QUAD
        self._quad = data[whole:]
        try:
            return base64.b64decode(data[:whole], validate=True)
        except binascii.Error:
            return b""


def _unmasked(mask: bytes, data: bytes) -> bytes:
    if not data:
        return b""
    repeated = (mask * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(data), "big")
