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
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protofields import fields, signed

MAGIC = b"k8s\x00"
_ZEROS: dict[str, object] = {"int": 0, "double": 0, "bool": False, "string": "", "bytes": ""}


class UnknownForm(FormatError):
    """The protobuf form of a kind or field is unknown."""


def to_json(body: bytes) -> bytes:
    """The body as JSON. Raises FormatError, UnknownForm."""
    if not body.startswith(MAGIC):
        raise FormatError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(fields(body[len(MAGIC) :]))
    meta = dict(fields(_bytes(envelope.get(1, b""))))
    api_version, kind = (_bytes(meta.get(number, b"")).decode("utf-8", "replace") for number in (1, 2))
    try:
        doc = _read(message_of(api_version, kind), _bytes(envelope.get(2, b"")))
        return codec.encode({"kind": kind, "apiVersion": api_version, **doc})
    except RecursionError as error:
        raise FormatError("exceeded max depth") from error


def _read(name: str, data: bytes) -> Doc:
    known = message(name)
    if known is None:
        raise UnknownForm(f"the protobuf form of {name} is not known")
    doc: Doc = {}
    for number, value in fields(data):
        field = known.get(number)
        if field is None:
            raise UnknownForm(f"the protobuf form of {name} has no known field {number}")
        _set(doc, field, value)
    return doc


def _set(doc: Doc, field: Field, value: int | bytes) -> None:
    if not field.name:
        embedded = _value(field.type, value)
        assert isinstance(embedded, dict)
        doc |= embedded
    elif field.keyed:
        pair = dict(fields(_bytes(value)))
        entries = doc.setdefault(field.name, {})
        assert isinstance(entries, dict)
        key = _bytes(pair.get(1, b"")).decode("utf-8", "replace")
        entries[key] = _value(field.type, pair[2]) if 2 in pair else _zero(field.type)
    elif field.repeated:
        items = doc.setdefault(field.name, [])
        assert isinstance(items, list)
        items.append(_value(field.type, value))
    else:
        doc[field.name] = _value(field.type, value)


def _zero(type_: str) -> object:
    return _ZEROS[type_] if type_ in _ZEROS else _value(type_, b"")


def _value(type_: str, value: int | bytes) -> object:
    if type_ in ("int", "bool"):
        if not isinstance(value, int):
            raise FormatError(f"wrong wireType for a field of type {type_}")
        return signed(value) if type_ == "int" else value != 0
    data = _bytes(value)
    if type_ == "double":
        return _double(data)
    if type_ == "string":
        return data.decode("utf-8", "replace")
    if type_ == "bytes":
        return base64.b64encode(data).decode()
    reader = special(type_)
    return chosen(type_, _read(type_, data)) if reader is None else reader(data)


def _double(data: bytes) -> float:
    """A double; whole numbers as int, as in Go's JSON."""
    if len(data) != struct.calcsize("<d"):
        raise FormatError("wrong wireType for a field of type double")
    value: float = struct.unpack("<d", data)[0]
    if not math.isfinite(value):
        raise FormatError(f"unsupported value: {value}")
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise FormatError("wrong wireType")
    return value
