"""The stored bytes of RawExtensions, which kube-apiserver compares when an object is updated.

JSON answers have them without spaces and with ``<``, ``>`` and ``&`` escaped. An object's protobuf form has them as
they were written.

upstream: staging/src/k8s.io/apimachinery/pkg/runtime/extension.go
"""

from collections.abc import Iterable, Iterator

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.envelope import opened
from kcm_cli.machinery.protofields import fields


class RawField(msgspec.Struct, frozen=True):
    """Where an object has RawExtensions; lists on the way are followed.

    names: fields in JSON. numbers: fields in protobuf, up to that of the RawExtension's bytes.
    """

    names: tuple[str, ...]
    numbers: tuple[int, ...]


def restored(doc: Doc, stored: bytes, raw_fields: Iterable[RawField]) -> Doc:
    """The document with the bytes of an object's protobuf form. It is changed in place.

    A field of which the two have different numbers of values is left as it is. Raises FormatError if ``stored`` is not
    such a form.
    """
    message = opened(stored).data
    for field in raw_fields:
        places = list(_places(doc, field.names))
        values = list(_values(message, field.numbers))
        if len(places) == len(values):
            for (parent, name), value in zip(places, values, strict=True):
                parent[name] = msgspec.Raw(value)
    return doc


def _places(node: object, names: tuple[str, ...]) -> Iterator[tuple[Doc, str]]:
    if isinstance(node, list):
        for item in node:
            yield from _places(item, names)
    elif isinstance(node, dict) and names[0] in node:
        if len(names) == 1:
            yield node, names[0]
        else:
            yield from _places(node[names[0]], names[1:])


def _values(message: bytes, numbers: tuple[int, ...]) -> Iterator[bytes]:
    if not numbers:
        yield message
        return
    for number, value in fields(message):
        if number == numbers[0] and isinstance(value, bytes):
            yield from _values(value, numbers[1:])
