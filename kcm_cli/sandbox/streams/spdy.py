"""SPDY/3.1 for exec, attach and port-forward of kubectl and client-go: the server's side of a session, without I/O.

There is no flow control, as in the clients' library. Headers share one compression context per direction, so frames
must be read and written in order.

upstream: github.com/moby/spdystream
"""

import struct
import zlib
from collections.abc import Iterator, Mapping

import msgspec

from kcm_cli.sandbox.streams.pipe import parts

_WORDS = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|a"
    "ge|allow|authorization|cache-control|connection|content-base|content-encoding|content-language|content-l"
    "ength|content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-matc"
    "h|if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragm"
    "a|proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|u"
    "pgrade|user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public"
    "|set-cookie|keep-alive|origin"
)
_PHRASES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Author"
    "itative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 No"
    "t Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Au"
    "g Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,"
    "image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,def"
    "late,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_DICTIONARY = b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS.split("|")) + _PHRASES.encode()
"""The dictionary for compressing headers (SPDY/3, section 2.6.10.1)."""
_VERSION = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _HEADERS = 1, 2, 3, 6, 8
_FIN = 1
_MOST_HEADERS = 1 << 20
"""The limit for the frame of a stream's headers, and for them decompressed. Other frames have at most 16 MiB, since
their length has three bytes."""


class SpdyError(Exception):
    """The client violates SPDY/3.1."""


class Opened(msgspec.Struct, frozen=True):
    """The client has opened a stream."""

    stream: int
    headers: Mapping[str, str]


class Data(msgspec.Struct, frozen=True):
    """Bytes of a stream. ``end``: they are the last ones."""

    stream: int
    data: bytes
    end: bool


class Reset(msgspec.Struct, frozen=True):
    """The client has reset a stream."""

    stream: int


class Session(msgspec.Struct):
    """Pass received bytes to ``receive``, and send ``replies`` after it. Send what the other methods return."""

    replies: bytearray = msgspec.field(default_factory=bytearray)
    _rest: bytearray = msgspec.field(default_factory=bytearray)
    _reads: "zlib._Decompress" = msgspec.field(default_factory=lambda: zlib.decompressobj(zdict=_DICTIONARY))
    _writes: "zlib._Compress" = msgspec.field(default_factory=lambda: zlib.compressobj(zdict=_DICTIONARY))
    _left: int = 0
    """The bytes that the current frame with data still has, and below its stream and whether it is the last one."""
    _stream: int = 0
    _ends: bool = False

    def receive(self, data: bytes) -> Iterator[Opened | Data | Reset]:
        """The events in these bytes. Data comes as it arrives, in parts of a frame. Raises SpdyError."""
        self._rest += data
        while self._rest:
            if self._left:
                yield self._taken()
                continue
            if len(self._rest) < 8:
                return
            first, second = struct.unpack_from(">II", self._rest)
            flags, length = second >> 24, second & 0xFFFFFF
            if not first >> 31:
                del self._rest[:8]
                self._left, self._stream, self._ends = length, first, bool(flags & _FIN)
                if not length:
                    yield Data(first, b"", self._ends)
                continue
            if length > _MOST_HEADERS:
                raise SpdyError(f"a frame of {length} bytes is too large")
            if len(self._rest) < 8 + length:
                return
            body = bytes(self._rest[8 : 8 + length])
            del self._rest[: 8 + length]
            yield from self._control(first, flags, body)

    def _taken(self) -> Data:
        """The bytes of the current frame that are there."""
        found = bytes(self._rest[: self._left])
        del self._rest[: len(found)]
        self._left -= len(found)
        return Data(self._stream, found, self._ends and not self._left)

    def _control(self, first: int, flags: int, body: bytes) -> Iterator[Opened | Data | Reset]:
        version, kind = (first >> 16) & 0x7FFF, first & 0xFFFF
        if version != _VERSION:
            raise SpdyError(f"version {version} of SPDY is not known")
        if kind == _SYN_STREAM:
            stream = _number(body, 0)
            yield Opened(stream, self._headers(body[10:]))
            if flags & _FIN:
                yield Data(stream, b"", True)
        elif kind == _RST_STREAM:
            yield Reset(_number(body, 0))
        elif kind == _PING:
            self.replies += _control_frame(_PING, body)
        elif kind == _HEADERS:
            self._headers(body[4:])

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            data = self._reads.decompress(block, _MOST_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"headers cannot be read: {error}") from None
        found: dict[str, str] = {}
        at = 4
        for _ in range(_number(data, 0)):
            pair = []
            for _ in range(2):
                size = _number(data, at)
                pair.append(data[at + 4 : at + 4 + size].decode("latin-1"))
                at += 4 + size
            found[pair[0].lower()] = pair[1].partition("\0")[0]
        return found

    def accept(self, stream: int) -> bytes:
        """The frame that accepts a stream (SYN_REPLY)."""
        block = self._writes.compress(struct.pack(">I", 0)) + self._writes.flush(zlib.Z_SYNC_FLUSH)
        return _control_frame(_SYN_REPLY, struct.pack(">I", stream) + block)

    @staticmethod
    def data(stream: int, data: bytes, *, end: bool = False) -> bytes:
        """Bytes of a stream, in frames."""
        frames = [*parts(data)] or [b""]
        last = len(frames) - 1
        return b"".join(
            struct.pack(">II", stream, ((_FIN if end and index == last else 0) << 24) | len(part)) + part
            for index, part in enumerate(frames)
        )


def _control_frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, len(body)) + body


def _number(data: bytes, at: int) -> int:
    """The 31-bit number at an index. Raises SpdyError."""
    if len(data) < at + 4:
        raise SpdyError("a frame is too short")
    found: int = struct.unpack_from(">I", data, at)[0]
    return found & 0x7FFFFFFF
