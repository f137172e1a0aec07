"""Converts documents to protobuf, for clients that accept nothing else.

Zeros in the document are written, which upstream does not for all fields. Decoders cannot see the difference.

upstream: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, pkg/apis/meta/v1/watch.go (v1.36)
"""

import base64
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from kcm_cli.api.protobuf.decoding import UnknownForm
from kcm_cli.api.protobuf.messages import Field, Message, message, message_of
from kcm_cli.api.protobuf.special import choice, writer
from kcm_cli.machinery.envelope import MAGIC
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protowire import doubled, numbered, packed

_LIST_META = Field("metadata", "meta.v1.ListMeta", repeated=False, keyed=False)


def to_protobuf(doc: dict[str, Any]) -> bytes:
    """A document as protobuf. Raises UnknownForm."""
    return enveloped(doc, to_parts(doc))


def to_parts(doc: dict[str, Any]) -> Iterator[bytes]:
    """The message of a document in parts: that of a list has one for each item. Raises UnknownForm."""
    form = _form(doc.get("apiVersion", ""), doc["kind"])
    items = doc.get("items") if form.get(1) is _LIST_META else None
    if not isinstance(items, list):
        yield _encoded(form, doc)
        return
    yield _encoded({1: _LIST_META}, doc)
    for item in items:
        yield _value(2, form[2].type, item)


def enveloped(doc: dict[str, Any], parts: Iterable[bytes]) -> bytes:
    """The parts of a document's message as an object of the API."""
    type_meta = packed(1, doc.get("apiVersion", "").encode()) + packed(2, doc["kind"].encode())
    return MAGIC + packed(1, type_meta) + packed(2, b"".join(parts)) + b'\x1a\x00"\x00'


def to_protobuf_frame(event: dict[str, Any]) -> bytes:
    """A watch event with its length prefix. Raises UnknownForm."""
    data = packed(1, event["type"].encode()) + packed(2, packed(1, to_protobuf(event["object"])))
    return struct.pack(">I", len(data)) + data


def _form(api_version: str, kind: str) -> Message:
    name = message_of(api_version, kind)
    known = message(name)
    if known is None and kind.endswith("List"):
        item = message_of(api_version, kind.removesuffix("List"))
        if message(item) is not None:
            return {1: _LIST_META, 2: Field("items", item, repeated=True, keyed=False)}
    if known is None:
        raise UnknownForm(f"the protobuf form of {name} is not known")
    return known


def _encoded(form: Message, doc: Mapping[str, object]) -> bytes:
    out: list[bytes] = []
    for number, field in form.items():
        if not field.name:
            inner = {key: doc[key] for key in _names(field.type) if key in doc}
            if inner:
                out.append(packed(number, _message(field.type, inner)))
        elif (value := doc.get(field.name)) is not None:
            _write(out, number, field, value)
    return b"".join(out)


def _write(out: list[bytes], number: int, field: Field, value: object) -> None:
    if field.keyed:
        assert isinstance(value, dict)
        for key in sorted(value):
            out.append(packed(number, packed(1, key.encode()) + _value(2, field.type, value[key])))
    elif field.repeated:
        assert isinstance(value, list)
        out += [_value(number, field.type, item) for item in value]
    else:
        out.append(_value(number, field.type, value))


def _value(number: int, type_: str, value: object) -> bytes:
    if type_ in ("int", "bool"):
        assert isinstance(value, int)
        return numbered(number, int(value))
    if type_ == "double":
        assert isinstance(value, (int, float))
        return doubled(number, value)
    if type_ == "string":
        return packed(number, str(value).encode())
    if type_ == "bytes":
        return packed(number, base64.b64decode(str(value)))
    special = writer(type_)
    return packed(number, special(value) if special is not None else _message(type_, choice(type_, value)))


def _message(name: str, value: object) -> bytes:
    known = message(name)
    if known is None:
        raise UnknownForm(f"the protobuf form of {name} is not known")
    if not isinstance(value, dict):
        raise FormatError(f"{name} is no map")
    return _encoded(known, value)


@cache
def _names(type_: str) -> frozenset[str]:
    """The JSON names of a message's fields, including those of embedded messages."""
    found: set[str] = set()
    for field in (message(type_) or {}).values():
        found |= {field.name} if field.name else _names(field.type)
    return frozenset(found)
