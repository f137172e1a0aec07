"""Converts protobuf bodies to JSON.

Only some fields distinguish a zero from an absent value. Zeros are kept here, and the decoder of documents drops them.

upstream: apimachinery pkg/runtime/serializer/protobuf/protobuf.go (v1.36)
"""

import base64
import math
import struct

from kcm_cli.api.protobuf.messages import Field, message, message_of
from kcm_cli.api.protobuf.special import chosen, special
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.envelope import as_bytes, opened
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protofields import fields, signed

_ZEROS: dict[str, object] = {"int": 0, "double": 0, "bool": False, "string": "", "bytes": ""}


class UnknownForm(FormatError):
    """The protobuf form of a kind or field is unknown."""


def to_json(body: bytes) -> bytes:
    """The body as JSON. Raises FormatError, UnknownForm."""
    envelope = opened(body)
    try:
        doc = _read(message_of(envelope.api_version, envelope.kind), envelope.data)
        return codec.encode({"kind": envelope.kind, "apiVersion": envelope.api_version, **doc})
    except RecursionError as error:
        raise FormatError("exceeded max depth") from error


def document(name: str, data: bytes) -> Doc:
    """A message as a document, with the fields that are known here. Raises FormatError."""
    return _read(name, data, strict=False)


def _read(name: str, data: bytes, *, strict: bool = True) -> Doc:
    """strict: raise UnknownForm for unknown fields."""
    known = message(name)
    if known is None:
        raise UnknownForm(f"the protobuf form of {name} is not known")
    doc: Doc = {}
    for number, value in fields(data):
        field = known.get(number)
        if field is None:
            if not strict:
                continue
            raise UnknownForm(f"the protobuf form of {name} has no known field {number}")
        _set(doc, field, value, strict=strict)
    return doc


def _set(doc: Doc, field: Field, value: int | bytes, *, strict: bool) -> None:
    if not field.name:
        embedded = _value(field.type, value, strict=strict)
        assert isinstance(embedded, dict)
        doc |= embedded
    elif field.keyed:
        pair = dict(fields(as_bytes(value)))
        entries = doc.setdefault(field.name, {})
        assert isinstance(entries, dict)
        key = as_bytes(pair.get(1, b"")).decode("utf-8", "replace")
        entries[key] = _value(field.type, pair[2], strict=strict) if 2 in pair else _zero(field.type)
    elif field.repeated:
        items = doc.setdefault(field.name, [])
        assert isinstance(items, list)
        items.append(_value(field.type, value, strict=strict))
    else:
        doc[field.name] = _value(field.type, value, strict=strict)


def _zero(type_: str) -> object:
    return _ZEROS[type_] if type_ in _ZEROS else _value(type_, b"", strict=True)


def _value(type_: str, value: int | bytes, *, strict: bool) -> object:
    if type_ in ("int", "bool"):
        if not isinstance(value, int):
            raise FormatError(f"wrong wireType for a field of type {type_}")
        return signed(value) if type_ == "int" else value != 0
    data = as_bytes(value)
    if type_ == "double":
        return _double(data)
    if type_ == "string":
        return data.decode("utf-8", "replace")
    if type_ == "bytes":
        return base64.b64encode(data).decode()
    reader = special(type_)
    return chosen(type_, _read(type_, data, strict=strict)) if reader is None else reader(data)


def _double(data: bytes) -> float:
    """A double; whole numbers as int, as in Go's JSON."""
    if len(data) != struct.calcsize("<d"):
        raise FormatError("wrong wireType for a field of type double")
    value: float = struct.unpack("<d", data)[0]
    if not math.isfinite(value):
        raise FormatError(f"unsupported value: {value}")
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
