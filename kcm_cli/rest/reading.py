"""Decodes successful answers. Raises ``Unreadable`` for an answer that is not what was requested."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from kcm_cli.api.resource import Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.rest.transport import Response, Unreadable

T = TypeVar("T")
Obj = TypeVar("Obj", bound=Object)

_ABOUT_OBJECT = frozenset({"", "status", "scale", "finalize", "approval"})
"""The subresources that answer with an object of the parent's name."""


def read(body: codec.Data, type_: type[T]) -> T:
    """An answer as a view. Raises Unreadable."""
    try:
        return codec.decode(body, type_)
    except codec.DecodeError as error:
        raise unreadable(error) from None


def read_doc(body: codec.Data) -> Doc:
    """An answer as a document. Raises Unreadable."""
    try:
        return codec.decode_doc(body)
    except codec.DecodeError as error:
        raise unreadable(error) from None


def read_named(resource: Resource[Any], body: codec.Data, name: str, subresource: str = "") -> Doc:
    """An answer as the document of the requested object. Raises Unreadable."""
    doc = read_doc(body)
    metadata = doc.get("metadata")
    if subresource in _ABOUT_OBJECT and not (isinstance(metadata, dict) and metadata.get("name") == name):
        raise Unreadable(f"the answer cannot be read: it is no {resource.kind or 'object'} named {name}")
    return doc


def read_object(resource: Resource[Obj], body: bytes, name: str = "", subresource: str = "") -> Obj:
    """An answer as an object. Its name must be the requested one, where that is known.

    An object without a name (reviews are not stored) must at least be of the kind. Raises Unreadable for others:
    missing fields of ``{}`` would be taken for empty ones.
    """
    try:
        obj = resource.decode(body)
    except codec.DecodeError as error:
        raise unreadable(error) from None
    if subresource not in _ABOUT_OBJECT:
        return obj
    if obj.name != name if name else not obj.name and read_doc(body).get("kind") != resource.kind:
        wanted = f"{resource.kind or 'object'} named {name}" if name else resource.kind or "object"
        raise Unreadable(f"the answer cannot be read: it is no {wanted}")
    return obj


def unreadable(error: codec.DecodeError) -> Unreadable:
    """The error for bytes that cannot be decoded."""
    return Unreadable(f"the answer cannot be read: {error}")


def server_time(answer: Response) -> datetime | None:
    """The time at which an answer was sent, by the server's clock, in whole seconds; None where it has none."""
    try:
        return parsedate_to_datetime(answer.headers.get("date", "")).astimezone(UTC)
    except (ValueError, OverflowError):  # no date, and one beyond the calendar in UTC
        return None
