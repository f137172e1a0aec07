"""JSON in and out: the one place where bytes become objects.

Two forms exist. A *document* is the plain ``dict`` that the API server sent, nothing dropped. A *view* is a
frozen msgspec struct with the fields that a controller reads; what it does not name is skipped while decoding.

In a view null is absence, as it is to encoding/json in Go: a null field has its default, a null element of a list or
value of a map is that type's zero value. Nulls that a view's type has no place for cost a second pass (``nulls``);
all else is decoded in one.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from kcm_cli.machinery import nulls
from kcm_cli.machinery.errors import MachineryError

T = TypeVar("T")

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
Doc = dict[str, object]
"""A JSON object whose shape is known only to its reader."""
Data = bytes | bytearray | memoryview | str | msgspec.Raw

_encoder = msgspec.json.Encoder()
_sorted_encoder = msgspec.json.Encoder(order="sorted")
_doc_decoder = msgspec.json.Decoder(dict[str, object])
_decoders: dict[object, msgspec.json.Decoder[object]] = {}
_NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)


class DecodeError(MachineryError):
    """Bytes that are not valid JSON (truncated, another format, invalid UTF-8, nested too deeply)."""


class ShapeError(DecodeError):
    """JSON that does not match the type. The message names the path."""


def encode(value: object) -> bytes:
    """Encode a document, a view or a value as compact JSON."""
    return _encoder.encode(value)


def encode_sorted(value: object) -> bytes:
    """Encode with sorted keys, as Go writes maps."""
    return _sorted_encoder.encode(value)


def decode(data: Data, type_: type[T]) -> T:
    """Decode JSON into a view. Decoders are made once per type. Raises DecodeError."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    try:
        return decoder.decode(data)  # type: ignore[return-value]  # the table maps T to Decoder[T]
    except msgspec.ValidationError:
        return _decode_again(data, type_, decoder)
    except _NOT_JSON as error:
        raise DecodeError(str(error)) from None


def decode_doc(data: Data) -> Doc:
    """Decode a JSON object without dropping anything. Raises DecodeError."""
    try:
        return _doc_decoder.decode(data)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error)) from None
    except _NOT_JSON as error:
        raise DecodeError(str(error)) from None


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


def check_text(data: bytes) -> None:
    """Raises DecodeError for invalid UTF-8, which is not noticed in fields that a view does not have."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(str(error)) from None


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


def _decode_again(data: Data, type_: type[T], decoder: msgspec.json.Decoder[object]) -> T:
    """Decode with nulls removed first."""
    try:
        plain = nulls.without(msgspec.json.decode(data), type_)
        return decoder.decode(_encoder.encode(plain))  # type: ignore[return-value]
    except (msgspec.ValidationError, OverflowError) as error:
        raise ShapeError(str(error)) from None
    except _NOT_JSON as error:
        raise DecodeError(str(error)) from None
