"""JSON in and out: the one place where bytes become objects.

Two forms exist. A *document* is the plain ``dict`` that the API server sent, nothing dropped. A *view* is a
frozen msgspec struct with the fields that a controller reads; what it does not name is skipped while decoding.

In a view null is absence, as it is to encoding/json in Go: a null field has its default, a null element of a list or
value of a map is that type's zero value. Nulls that a view's type has no place for cost a second pass (``nulls``), as
does what msgspec refuses and Go reads: fields without a place in the view that nest a thousand deep (``nesting``), and
halves of surrogate pairs. All else is decoded in one.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeVar, cast

import msgspec

from kcm_cli.machinery import nesting, nulls
from kcm_cli.machinery.errors import MachineryError

T = TypeVar("T")

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
Doc = dict[str, object]
"""A JSON object whose shape is known only to its reader."""
Decoder = msgspec.json.Decoder[object]
Data = bytes | bytearray | memoryview | str | msgspec.Raw

MANAGED_FIELDS = "fieldsV1"
"""Of managed fields, in metadata of objects and of templates: the API server returns them as their user wrote them."""

_encoder = msgspec.json.Encoder()
_sorted_encoder = msgspec.json.Encoder(order="sorted")
_doc_decoder = msgspec.json.Decoder(dict[str, object])
_decoders: dict[object, Decoder] = {}
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""An escape: a pair of surrogates, half of one alone (group 1), or another.

Without possessive groups: those of Python 3.11.0 to 3.11.4 match wrongly where a branch has to be given up.
"""


class DecodeError(MachineryError):
    """Bytes that are not valid JSON (truncated, another format, invalid UTF-8)."""


class TextError(DecodeError):
    """Invalid UTF-8."""


class ShapeError(DecodeError):
    """JSON that does not match the type, or nests too deeply. The message names the path."""


def encode(value: object) -> bytes:
    """Encode a document, a view or a value as compact JSON.

    In a document, halves of surrogate pairs become U+FFFD: Python keeps bytes that are not UTF-8 as such, and
    encoding/json writes them like that.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_without_halves(value))


def encode_sorted(value: object) -> bytes:
    """Encode with sorted keys, as Go writes maps."""
    try:
        return _sorted_encoder.encode(value)
    except UnicodeEncodeError:
        return _sorted_encoder.encode(_without_halves(value))


def _without_halves(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(one) for key, one in value.items()}
    return [_without_halves(one) for one in value] if isinstance(value, list | tuple) else value


def as_text(value: object) -> str:
    """A text as it is, any other value as JSON with sorted keys."""
    return value if isinstance(value, str) else encode_sorted(value).decode()


def decode(data: Data, type_: type[T]) -> T:
    """Decode JSON into a view. Decoders are made once per type. Raises DecodeError."""
    decoder = _decoders.get(type_) or _decoder_of(type_)
    try:
        return decoder.decode(data)  # type: ignore[return-value]  # the table maps T to Decoder[T]
    except msgspec.ValidationError:
        return _decode_again(data, type_, decoder)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if _is_about_text(error):
            raise TextError(str(error)) from None
        return _decode_odd(_bytes(data), type_, decoder)


def decode_or_none(data: Data, type_: type[T]) -> T | None:
    """As ``decode``, but None for what cannot be decoded."""
    try:
        return decode(data, type_)
    except DecodeError:
        return None


def is_utf8(data: Data) -> bool:
    """Whether a text is UTF-8 throughout. Decoders check only the strings that they read: a key with other bytes is
    one that they do not know, and its field seems to be absent."""
    text = _bytes(data)
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_about_text(error: Exception) -> bool:
    """Whether a decoder found invalid UTF-8: a UnicodeError up to msgspec 0.22, and from 0.23 on one of msgspec's."""
    return isinstance(error, UnicodeError) or str(error).startswith("Invalid UTF-8")


def _decoder_of(type_: object) -> Decoder:
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    return decoder


def usual(data: Data, type_: type[T]) -> T | None:
    """As ``decode``, but None for whatever takes more than the usual way."""
    try:
        return _decoder_of(type_).decode(data)  # type: ignore[return-value]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def parts(data: bytes) -> Iterator[tuple[str, msgspec.Raw, bool]]:
    """The members of an object one by one, whatever their values are; of a list its elements, each with True.

    The text is read as far as the caller goes. Raises DecodeError.
    """
    try:
        for name, first, last, element in nesting.Extents(data, whole=False).parts():
            yield name, msgspec.Raw(data[first:last]), element
    except nesting.Malformed as error:
        raise DecodeError(f"JSON is malformed: {error}") from None


def decode_doc(data: Data) -> Doc:
    """Decode a JSON object without dropping anything. Raises DecodeError.

    Parts that the decoder refuses because they nest too deeply, or are managed fields with invalid UTF-8, are
    ``msgspec.Raw``, which is encoded as the same bytes.
    """
    try:
        return _doc_decoder.decode(data)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error)) from None
    except RecursionError:
        return _odd_doc(_bytes(data))
    except (msgspec.DecodeError, UnicodeError) as error:
        text = _bytes(data)
        if not _is_about_text(error):
            return _decode_odd(text, Doc, cast(Decoder, _doc_decoder))
        check_text(without(text, (), MANAGED_FIELDS))
        return _odd_doc(text)


def decode_paths(data: Data, paths: Iterable[tuple[str, ...]]) -> Doc:
    """Decode an object as far as the paths go. All else is ``msgspec.Raw``, which is encoded as the same bytes.

    Raises DecodeError.
    """
    parts = decode(data, dict[str, msgspec.Raw])
    found: dict[str, object] = {**parts}
    below: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        below.setdefault(path[0], []).append(path[1:])
    for name, rests in below.items():
        if name in parts:
            value = parts[name]
            is_object = all(rests) and bytes(memoryview(value)[:1]) == b"{"
            found[name] = decode_paths(value, rests) if is_object else decode(value, object)
    return found


def without(data: Data, paths: Iterable[tuple[str, ...]], anywhere: str) -> bytes:
    """The text with null for the values at these paths, and for all values of members with the name ``anywhere``.

    Lists on the way are followed. Raises DecodeError.
    """
    try:
        return nesting.without(_bytes(data), paths, anywhere)
    except nesting.Malformed as error:
        raise DecodeError(f"JSON is malformed: {error}") from None


def members(data: Data) -> dict[str, msgspec.Raw]:
    """The members of an object, whatever their values are, as far as its text can be split; none of other values."""
    found: dict[str, msgspec.Raw] = {}
    text = _bytes(data)
    try:
        extents = nesting.Extents(text)
        for name, first, last in extents.members(extents.root):
            found[name] = msgspec.Raw(text[first:last])
    except nesting.Malformed:
        pass
    return found


def elements(data: Data) -> list[msgspec.Raw]:
    """The elements of a list, in the same way."""
    found: list[msgspec.Raw] = []
    text = _bytes(data)
    try:
        extents = nesting.Extents(text)
        found.extend(msgspec.Raw(text[first:last]) for first, last in extents.elements(extents.root))
    except nesting.Malformed:
        pass
    return found


def check_text(data: bytes) -> None:
    """Raises TextError for invalid UTF-8, which is not noticed in fields that a view does not have."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise TextError(str(error)) from None


def convert(value: object, type_: type[T]) -> T:
    """Convert part of a document to a view, with the rules of ``decode``. Raises ShapeError."""
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(nulls.without(value, type_), type_)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error)) from None


def _decode_again(data: Data, type_: type[T], decoder: Decoder) -> T:
    """Decode with nulls removed first."""
    try:
        plain = nulls.without(msgspec.json.decode(data), type_)
        return decoder.decode(_encoder.encode(plain))  # type: ignore[return-value]
    except (msgspec.ValidationError, OverflowError) as error:
        raise ShapeError(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if _is_about_text(error):
            raise TextError(str(error)) from None
        return _decode_odd(_bytes(data), type_, decoder)


def _decode_odd(data: bytes, type_: type[T], decoder: Decoder) -> T:
    """Decode what msgspec refuses and Go reads, or raise what is wrong with it.

    What a record keeps as Raw is cut out of the text, so that one broken part does not affect the others.
    """
    try:
        if _has_raw_parts(type_):
            return _from_parts(data, type_)
        plain = nesting.shallow(_ESCAPE.sub(_whole, data), type_)
    except nesting.Malformed as error:
        raise DecodeError(f"JSON is malformed: {error}") from None
    try:
        try:
            return decoder.decode(plain)  # type: ignore[return-value]
        except msgspec.ValidationError:
            pruned = nulls.without(msgspec.json.decode(plain), type_)
            return decoder.decode(_encoder.encode(pruned))  # type: ignore[return-value]
    except (msgspec.ValidationError, OverflowError) as error:
        raise ShapeError(str(error)) from None
    except RecursionError:
        raise ShapeError("it nests too deeply") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise (TextError if _is_about_text(error) else DecodeError)(str(error)) from None


def _odd_doc(data: bytes) -> Doc:
    try:
        extents = nesting.Extents(data)
        found = _odd_value(data, extents, extents.root, len(data), 1)
    except nesting.Malformed as error:
        raise DecodeError(f"JSON is malformed: {error}") from None
    if not isinstance(found, dict):
        raise ShapeError("Expected `object`")
    return found


def _odd_value(data: bytes, extents: nesting.Extents, first: int, last: int, level: int) -> object:
    """A value whose parts are decoded, or else are Raw."""
    text = data[first:last]
    try:
        if not extents.is_deep(first):
            return decode(text, object)
    except (TextError, ShapeError):
        pass
    if level < nesting.LEVELS and text[:1] == b"[":
        return [_odd_value(data, extents, start, end, level + 1) for start, end in extents.elements(first)]
    parts = list(extents.members(first)) if level < nesting.LEVELS else []
    if not parts or any("\ufffd" in name for name, _, _ in parts):  # a name that cannot be kept
        return msgspec.Raw(text)
    return {name: _odd_value(data, extents, start, end, level + 1) for name, start, end in parts}


def _whole(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def _has_raw_parts(type_: type) -> bool:
    return type_ == dict[str, msgspec.Raw] or any(_is_raw(field.type) for field in _fields(type_))


@cache
def _fields(type_: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(type_) if isinstance(type_, type) and issubclass(type_, msgspec.Struct) else ()


def _is_raw(type_: object) -> bool:
    return type_ is msgspec.Raw or _is_raw_list(type_)


def _is_raw_list(type_: object) -> bool:
    return type_ in (tuple[msgspec.Raw, ...], list[msgspec.Raw], list[msgspec.Raw] | None)


def _from_parts(data: bytes, type_: type[T]) -> T:
    """A record, or a map of Raw, of which each member is decoded by itself. Raises DecodeError, nesting.Malformed."""
    extents = nesting.Extents(data)
    if data[extents.root : extents.root + 1] != b"{":
        raise nesting.Malformed("it is no object")
    parts = {name: (first, last) for name, first, last in extents.members(extents.root)}
    if type_ == dict[str, msgspec.Raw]:
        return {name: msgspec.Raw(data[first:last]) for name, (first, last) in parts.items()}  # type: ignore[return-value]
    values: dict[str, object] = {}
    for field in _fields(cast(type, type_)):
        first, last = parts.get(field.encode_name, (0, 0))
        text = data[first:last]
        if text in (b"", b"null"):
            continue
        if field.type is msgspec.Raw:
            values[field.name] = msgspec.Raw(text)
        elif not _is_raw_list(field.type):
            values[field.name] = decode(text, field.type)
        elif text[:1] != b"[":
            raise ShapeError(f"Expected `array` - at `$.{field.encode_name}`")
        else:
            values[field.name] = tuple(msgspec.Raw(data[start:end]) for start, end in extents.elements(first))
    return type_(**values)


def _bytes(data: Data) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)
