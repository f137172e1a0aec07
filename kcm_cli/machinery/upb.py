"""Parses messages of Protocol Buffers by upb, the C library of the package ``protobuf``.

The messages are declared at run time. upb's module is imported by itself, at first use: what offers the same to others,
``google.protobuf.message_factory``, imports an implementation in Python, too, and takes five times as long (15 ms of
CPU). Where the module is missing, or is another one than this was made for, nothing can be parsed.
"""

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from kcm_cli.machinery.protowire import numbered, packed

INT64, BOOL, STRING, MESSAGE, BYTES = 3, 8, 9, 11, 12
"""Types of fields, as in descriptor.proto."""
_OPTIONAL, _REPEATED = 1, 3
_SYNTAX, _EDITION = b"editions", 1000
"""2023: fields have presence, and strings are UTF-8."""

Parse = Callable[[bytes], Any]
"""Makes a message, whose fields are attributes. Raises ``decode_error()``."""


class Declared(msgspec.Struct, frozen=True, gc=False):
    """A field. message: the name of its message, for the type MESSAGE."""

    name: str
    number: int
    type: int
    repeated: bool = False
    message: str = ""


_USED = ("DescriptorPool", "MessageMeta")


@cache
def _upb() -> Any:
    try:
        module = import_module("google._upb._message")
    except ImportError:
        return None
    return module if all(hasattr(module, name) for name in _USED) else None


def available() -> bool:
    """Whether messages can be parsed."""
    return _upb() is not None


@cache
def decode_error() -> type[Exception]:
    """The error for bytes that are no message."""
    error: type[Exception] = import_module("google.protobuf.message").DecodeError
    return error


def parsers(messages: Iterable[tuple[str, Iterable[Declared]]]) -> dict[str, Parse]:
    """A parser for each message, by its name. Other fields are skipped. Strings that are not UTF-8 are errors."""
    file = [packed(1, b"views.proto"), packed(2, b"kcm"), packed(12, _SYNTAX), numbered(14, _EDITION)]
    for name, fields in messages:
        file.append(packed(4, packed(1, name.encode()) + b"".join(packed(2, _declaration(one)) for one in fields)))
    upb, base = _upb(), import_module("google.protobuf.message").Message
    found = upb.DescriptorPool().AddSerializedFile(b"".join(file)).message_types_by_name
    made: dict[str, Parse] = {}
    for name, descriptor in found.items():
        made[name] = upb.MessageMeta(name, (base,), {"DESCRIPTOR": descriptor, "__module__": __name__}).FromString
    return made


def _declaration(field: Declared) -> bytes:
    text = packed(1, field.name.encode()) + numbered(3, field.number) + numbered(5, field.type)
    text += numbered(4, _REPEATED if field.repeated else _OPTIONAL)
    return text + packed(6, f".kcm.{field.message}".encode()) if field.message else text
