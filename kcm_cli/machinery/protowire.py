"""Encodes the wire format of Protocol Buffers."""

import struct

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""The forms that a field's value can have."""
_SHORT = [bytes([value]) for value in range(0x80)]


def varint(value: int) -> bytes:
    """A non-negative number."""
    if value < 0x80:
        return _SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def numbered(number: int, value: int) -> bytes:
    """A field with a 64-bit integer."""
    return varint(number << 3 | VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def doubled(number: int, value: float) -> bytes:
    """A field with a 64-bit float."""
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def packed(number: int, value: bytes) -> bytes:
    """A field with a string, bytes or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value
