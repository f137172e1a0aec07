"""JSON in and out: the one place where bytes become objects.

Two forms exist. A *document* is the plain ``dict`` that the API server sent, nothing dropped. A *view* is a
frozen msgspec struct with the fields that a controller reads; what it does not name is skipped while decoding.
"""

from typing import TypeVar

import msgspec

T = TypeVar("T")

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
Doc = dict[str, object]
"""A JSON object whose shape is known only to its reader."""

_encoder = msgspec.json.Encoder()
_sorted_encoder = msgspec.json.Encoder(order="sorted")
_doc_decoder = msgspec.json.Decoder(dict[str, object])
_decoders: dict[object, msgspec.json.Decoder[object]] = {}

DecodeError = msgspec.DecodeError
"""Bytes that are not JSON, or JSON that is not of the asked type (its message names the path)."""


def encode(value: object) -> bytes:
    """Encode a document, a view or a value as compact JSON."""
    return _encoder.encode(value)


def encode_sorted(value: object) -> bytes:
    """Encode with sorted keys, as Go writes maps."""
    return _sorted_encoder.encode(value)


def decode(data: bytes | bytearray | memoryview | str | msgspec.Raw, type_: type[T]) -> T:
    """Decode JSON into a view. Decoders are made once per type. Raises DecodeError."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    return decoder.decode(data)  # type: ignore[return-value]  # the table maps T to Decoder[T]


def decode_doc(data: bytes | bytearray | memoryview | str | msgspec.Raw) -> Doc:
    """Decode a JSON object without dropping anything. Raises DecodeError."""
    return _doc_decoder.decode(data)
