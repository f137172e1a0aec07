"""The clients' side of WebSockets and SPDY."""

import struct
from typing import Any


def masked(kind: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame of a client."""
    mask, size = b"\x11\x22\x33\x44", len(data)
    first = (0x80 if final else 0) | kind
    if size < 126:
        head = struct.pack(">BB", first, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", first, 0xFE, size)
    else:
        head = struct.pack(">BBQ", first, 0xFF, size)
    return head + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))


def syn_stream(writer: Any, stream: int, headers: dict[str, str]) -> bytes:
    """A stream that a client opens; writer: the one compression of its session."""
    import zlib

    block = struct.pack(">I", len(headers))
    for name, value in headers.items():
        for text in (name, value):
            block += struct.pack(">I", len(text)) + text.encode()
    data = struct.pack(">IIH", stream, 0, 0) + writer.compress(block) + writer.flush(zlib.Z_SYNC_FLUSH)
    return struct.pack(">HHI", 0x8003, 1, len(data)) + data
