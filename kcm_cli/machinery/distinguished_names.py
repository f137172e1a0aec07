"""The subjects of certificates and requests, as Go reads and writes them.

upstream: crypto/x509/pkix/pkix.go#Name, encoding/asn1, crypto/x509/parser.go#parseName
"""

from collections.abc import Callable, Mapping, Sequence

from kcm_cli.machinery import der
from kcm_cli.machinery.der import Reader, UnsupportedError
from kcm_cli.machinery.errors import FormatError

COMMON_NAME, SERIAL_NUMBER, ORGANIZATION = "2.5.4.3", "2.5.4.5", "2.5.4.10"
_LISTS = ("2.5.4.6", "2.5.4.8", "2.5.4.7", "2.5.4.9", "2.5.4.17", ORGANIZATION, "2.5.4.11")
"""Country, province, locality, street, postal code, organization and unit: all values form one relative name."""


def values(name: bytes, *, only_text: bool = False) -> Mapping[str, Sequence[str]]:
    """The values of each attribute of a name (DER), by OID. Relative names are flattened.

    Values that are no text are left out. Those of certificates have to be text (``only_text``). Raises FormatError;
    UnsupportedError, which is one, for a form that Go reads.
    """
    found: dict[str, list[str]] = {}
    names = Reader(name).content(der.SEQUENCE)
    while not names.done:
        parts = names.content(der.SET)
        while not parts.done:
            attribute = parts.content(der.SEQUENCE)
            kind, value = attribute.oid(), _value(attribute.any())
            if value is not None:
                found.setdefault(kind, []).append(value)
            elif only_text:
                raise FormatError("x509: invalid RDNSequence: invalid attribute value: unsupported string type")
    return found


def common_name(names: Mapping[str, Sequence[str]]) -> str:
    """Of several the last one; empty if there is none."""
    return names.get(COMMON_NAME, ("",))[-1]


def written(names: Mapping[str, Sequence[str]]) -> bytes:
    """A name with the attributes that Go's ``pkix.Name`` has, in its order and its string types (DER)."""
    lists = [(kind, names[kind]) for kind in _LISTS if kind in names]
    single = [(kind, names[kind][-1:]) for kind in (COMMON_NAME, SERIAL_NUMBER) if kind in names and names[kind][-1]]
    return der.element(der.SEQUENCE, *(_relative_name(kind, found) for kind, found in (*lists, *single)))


def _relative_name(kind: str, found: Sequence[str]) -> bytes:
    oid = der.oid(kind)
    return der.set_of(der.element(der.SEQUENCE, oid, der.string(value)) for value in found)


def _value(element: der.Element) -> str | None:
    """The text of an attribute; None for a value that is no text."""
    if element.tag in (der.UTC_TIME, der.GENERALIZED_TIME):
        raise UnsupportedError("x509: times in the subject are not supported")
    if (check := _CHECKS.get(element.tag)) is not None:
        check(Reader(element.full))
        return None
    read = _STRINGS.get(element.tag)
    return read(element.content) if read is not None else None


def _latin(content: bytes) -> str:
    return content.decode("latin-1")


def _of(characters: bytes, name: str) -> Callable[[bytes], str]:
    def read(content: bytes) -> str:
        if content.translate(None, characters):
            raise FormatError(f"asn1: syntax error: {name} contains invalid character")
        return content.decode("ascii")

    return read


def _utf8(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise FormatError("asn1: invalid UTF-8 string") from None


def _bmp(content: bytes) -> str:
    """UTF-16 without surrogates and without some characters that are none."""
    try:
        text = content.removesuffix(b"\0\0").decode("utf-16-be") if len(content) % 2 == 0 else "\uffff"
    except UnicodeDecodeError:
        text = "\uffff"
    if any("\ufdd0" <= char <= "\ufdef" or char in "\ufffe\uffff" or char > "\uffff" for char in text):
        raise FormatError("invalid BMPString")
    return text


_DIGITS = b"0123456789"
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_STRINGS: Mapping[int, Callable[[bytes], str]] = {
    der.UTF8_STRING: _utf8,
    18: _of(_DIGITS + b" ", "NumericString"),
    der.PRINTABLE_STRING: _of(_LETTERS + _DIGITS + b" '()+,-./:=?*&", "PrintableString"),
    20: _latin,
    22: _of(bytes(range(128)), "IA5String"),
    30: _bmp,
}
_CHECKS: Mapping[int, Callable[[Reader], object]] = {
    der.BOOLEAN: Reader.boolean,
    der.INTEGER: Reader.int64,
    der.BIT_STRING: Reader.bits,
    der.OID: Reader.oid,
}
"""Values that are no text, but have to be valid."""
