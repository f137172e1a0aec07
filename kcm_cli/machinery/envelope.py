"""The envelope of objects in protobuf: a prefix, apiVersion and kind, and the object's bytes.

upstream: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, pkg/runtime/generated.proto (``Unknown``)
"""

import msgspec

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protofields import fields

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_TYPE, _OBJECT = 1, 2


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """An object with its kind. data: its message."""

    api_version: str
    kind: str
    data: bytes


def opened(body: bytes) -> Envelope:
    """What an envelope holds. Raises FormatError."""
    if not body.startswith(MAGIC):
        raise FormatError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(fields(body[len(MAGIC) :]))
    api_version, kind = type_of(as_bytes(envelope.get(_TYPE, b"")))
    return Envelope(api_version, kind, as_bytes(envelope.get(_OBJECT, b"")))


def type_of(message: bytes) -> tuple[str, str]:
    """apiVersion and kind of a TypeMeta message. Raises FormatError."""
    found = dict(fields(message))
    api_version, kind = (as_bytes(found.get(number, b"")).decode("utf-8", "replace") for number in (1, 2))
    return api_version, kind


def as_bytes(value: int | bytes) -> bytes:
    """The value of a field with bytes. Raises FormatError for a number."""
    if not isinstance(value, bytes):
        raise FormatError("wrong wireType")
    return value
