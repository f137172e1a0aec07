"""Protocol Buffers' wire format: a message as the numbers and raw values of its fields.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

from kcm_cli.machinery.errors import FormatError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT = 10


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Each field's number and value: an unsigned integer for a varint, else bytes. Raises FormatError."""
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
    """The number at a place, and the place after it. Raises FormatError."""
    value = shift = 0
    for place in range(at, min(at + _MAX_VARINT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise FormatError("unexpected EOF" if len(data) < at + _MAX_VARINT else "integer overflow")


def numbered(number: int, value: int) -> bytes:
    """A field that holds a whole number."""
    return _varint(number << 3 | VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def packed(number: int, value: bytes) -> bytes:
    """A field that holds text, bytes or a message."""
    return _varint(number << 3 | BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    if value < 0x80:
        return _SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT = [bytes([value]) for value in range(0x80)]


def signed(value: int) -> int:
    """A varint as a signed 64-bit integer."""
    return value - (1 << 64) if value >> 63 else value
