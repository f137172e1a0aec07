"""DER as Go's encoding/asn1 reads and writes it, for documents on which two programs must agree.

upstream: encoding/asn1, golang.org/x/crypto/cryptobyte
"""

from collections.abc import Iterable

import msgspec

from kcm_cli.machinery.errors import FormatError

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, NULL, OID = 1, 2, 3, 4, 5, 6
UTF8_STRING, PRINTABLE_STRING, UTC_TIME, GENERALIZED_TIME = 12, 19, 23, 24
SEQUENCE, SET = 0x30, 0x31
"""With the bit of constructed elements."""
CONTEXT, CONSTRUCTED = 0x80, 0x20

KEY_TYPES = PKCS8, PKCS1, SEC1 = "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"
_KEY_FORMS = {SEQUENCE: PKCS8, INTEGER: PKCS1, OCTET_STRING: SEC1}
"""By the tag after the version."""

_EXTENSIONS, _KEY_ID = CONTEXT | CONSTRUCTED | 3, "2.5.29.14"
"""The tag of a certificate's extensions, and that of them with the identifier of its key."""
_HIGH_TAG = 0x1F
_LONG = 0x80
_MAX_LENGTH_OCTETS = 4
_MAX_ARC = 2**31 - 1
_MAX_ARC_OCTETS = 5
_PRINTABLE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 '()+,-./:=?")


class UnsupportedError(FormatError):
    """A form that Go may read, and that is not read here."""


class Element(msgspec.Struct, frozen=True):
    """tag: the first octet, with class and the bit of constructed elements. full: with tag and length."""

    tag: int
    content: bytes
    full: bytes


class Reader:
    """Reads the elements of a document one after the other. Methods raise FormatError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._data)

    def any(self) -> Element:
        """The next element. Raises UnsupportedError for a tag above 30."""
        data, start = self._data, self._at
        if len(data) - start < 2:  # octets of a tag and a length
            raise FormatError("asn1: syntax error: sequence truncated")
        tag, length, at = data[start], data[start + 1], start + 2
        if tag & _HIGH_TAG == _HIGH_TAG:
            raise UnsupportedError("asn1: structure error: tags above 30 are not supported")
        if length >= _LONG:
            octets = data[at : at + length - _LONG]
            length, at = self._long(octets, length - _LONG), at + len(octets)
        if length > len(data) - at:
            raise FormatError("asn1: syntax error: data truncated")
        self._at = at + length
        return Element(tag, data[at : self._at], data[start : self._at])

    def next(self, tag: int) -> Element:
        """The next element, which has the tag."""
        element = self.any()
        if element.tag != tag:
            raise FormatError("asn1: structure error: tags don't match")
        return element

    def content(self, tag: int) -> "Reader":
        """What is in the next element, which has the tag. What follows in it is not an error, as in Go."""
        return Reader(self.next(tag).content)

    def has(self, tag: int) -> bool:
        """Whether the next element has the tag."""
        return not self.done and self._data[self._at] == tag

    def integer(self) -> int:
        """An integer of any size."""
        content = self.next(INTEGER).content
        redundant = len(content) > 1 and content[0] in (0, 0xFF) and (content[0] ^ content[1]) & 0x80 == 0
        if not content or redundant:
            raise FormatError("asn1: structure error: integer not minimally-encoded")
        return int.from_bytes(content, "big", signed=True)

    def int64(self) -> int:
        """An integer of 64 bits."""
        value = self.integer()
        if not -(2**63) <= value < 2**63:
            raise FormatError("asn1: structure error: integer too large")
        return value

    def boolean(self) -> bool:
        content = self.next(BOOLEAN).content
        if content not in (b"\x00", b"\xff"):
            raise FormatError("asn1: syntax error: invalid boolean")
        return content == b"\xff"

    def bits(self) -> bytes:
        """A bit string, aligned to the right."""
        content = self.next(BIT_STRING).content
        unused = content[0] if content else 8
        if unused > 7 or (unused and (len(content) == 1 or content[-1] & ((1 << unused) - 1))):  # bits
            raise FormatError("asn1: syntax error: invalid padding bits in BIT STRING")
        bits = content[1:]
        return (int.from_bytes(bits, "big") >> unused).to_bytes(len(bits), "big") if unused else bits

    def oid(self) -> str:
        """An object identifier, with dots."""
        content = self.next(OID).content
        arcs: list[int] = []
        value, octets = 0, 0
        for octet in content:
            if octets == 0 and octet == 0x80:  # a leading zero
                raise FormatError("asn1: syntax error: integer is not minimally encoded")
            value, octets = value << 7 | octet & 0x7F, octets + 1
            if octets > _MAX_ARC_OCTETS or value > _MAX_ARC:
                raise FormatError("asn1: structure error: base 128 integer too large")
            if octet & 0x80 == 0:
                arcs.append(value)
                value = octets = 0
        if octets or not arcs:
            raise FormatError("asn1: syntax error: truncated base 128 integer")
        root = min(arcs[0] // 40, 2)
        return ".".join(map(str, (root, arcs[0] - 40 * root, *arcs[1:])))

    @staticmethod
    def _long(octets: bytes, wanted: int) -> int:
        """A length of several octets."""
        length = int.from_bytes(octets[: _MAX_LENGTH_OCTETS + 1], "big")
        if not 0 < len(octets) == wanted <= _MAX_LENGTH_OCTETS or octets[0] == 0 or length < _LONG:
            raise FormatError("asn1: syntax error: invalid length")
        return length


def issuer(certificate: bytes) -> bytes:
    """The issuer in a certificate (DER), with tag and length. Raises FormatError."""
    return _names(certificate)[0]


def subject(certificate: bytes) -> bytes:
    """The subject in a certificate (DER), with tag and length. Raises FormatError."""
    return _names(certificate)[1]


def _names(certificate: bytes) -> tuple[bytes, bytes]:
    signed = Reader(certificate).content(SEQUENCE).content(SEQUENCE)
    if signed.has(CONTEXT | CONSTRUCTED):
        signed.any()  # the version
    _number, _algorithm, issuer_, _validity, subject_ = (signed.any().full for _ in range(5))
    return issuer_, subject_


def without_key_id(certificate: bytes) -> bytes:
    """A certificate (DER) without the identifier of its key, and so with a signature that is wrong: as good as the
    certificate itself where it is trusted, and not verified. Raises FormatError."""
    signed, *rest = split(Reader(certificate).next(SEQUENCE).content)
    fields = split(Reader(signed).next(SEQUENCE).content)
    return element(SEQUENCE, element(SEQUENCE, *map(_without_key_id, fields)), *rest)


def _without_key_id(field: bytes) -> bytes:
    if field[0] != _EXTENSIONS:
        return field
    extensions = split(Reader(field).content(_EXTENSIONS).next(SEQUENCE).content)
    kept = [one for one in extensions if Reader(one).content(SEQUENCE).oid() != _KEY_ID]
    return element(_EXTENSIONS, element(SEQUENCE, *kept)) if kept else b""


def key_form(content: bytes) -> str:
    """The type of the PEM block that a private key of this form has; empty for another document."""
    try:
        reader = Reader(content).content(SEQUENCE)
        reader.integer()
        return _KEY_FORMS.get(reader.any().tag, "")
    except FormatError:
        return ""


def split(data: bytes) -> list[bytes]:
    """The elements of a document, undecoded. Raises FormatError."""
    reader, found = Reader(data), []
    while not reader.done:
        found.append(reader.any().full)
    return found


def element(tag: int, *parts: bytes) -> bytes:
    """An element whose content are the parts."""
    content = b"".join(parts)
    size = len(content)
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    length = bytes((size,)) if size < _LONG else bytes((_LONG | len(octets),)) + octets
    return bytes((tag,)) + length + content


def integer(value: int) -> bytes:
    return element(INTEGER, value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True))


def oid(dotted: str) -> bytes:
    first, second, *others = map(int, dotted.split("."))
    return element(OID, *map(_base128, (40 * first + second, *others)))


def bit_string(content: bytes, unused: int = 0) -> bytes:
    """unused: how many of the last bits do not count."""
    return element(BIT_STRING, bytes((unused,)), content)


def string(text: str) -> bytes:
    """A PrintableString if all characters are in its set, else a UTF8String."""
    content = text.encode()
    return element(PRINTABLE_STRING if _PRINTABLE.issuperset(content) else UTF8_STRING, content)


def set_of(elements: Iterable[bytes]) -> bytes:
    """A set in DER's order."""
    return element(SET, *sorted(elements))


def _base128(value: int) -> bytes:
    octets = [value & 0x7F]
    while value := value >> 7:
        octets.append(0x80 | value & 0x7F)
    return bytes(reversed(octets))
