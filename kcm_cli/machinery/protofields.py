"""Decodes the wire format of Protocol Buffers to field numbers and raw values.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protowire import BYTES, FIXED32, FIXED64, VARINT

_SIZES = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT = 10


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and value of each field: an unsigned integer for a varint, otherwise bytes. Raises FormatError."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, form = tag >> 3, tag & 7
        if not number:
            raise FormatError("illegal tag 0")
        if form == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if form == BYTES:
            size, at = varint(data, at)
        elif form in _SIZES:
            size = _SIZES[form]
        else:
            raise FormatError(f"illegal wireType {form}")
        if at + size > end:
            raise FormatError("unexpected EOF")
        yield number, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it. Raises FormatError."""
    value = shift = 0
    for place in range(at, min(at + _MAX_VARINT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise FormatError("unexpected EOF" if len(data) < at + _MAX_VARINT else "integer overflow")


def signed(value: int) -> int:
    """A varint as a signed 64-bit integer."""
    return value - (1 << 64) if value >> 63 else value
