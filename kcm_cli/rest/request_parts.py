"""The parts of a request: its path, its query, the options in its body; and what it changes."""

from typing import Any

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.names import path_segment
from kcm_cli.machinery.quoting import quote

Query = tuple[tuple[str, str], ...]

_DELETE_OPTIONS: Doc = {"kind": "DeleteOptions", "apiVersion": "v1"}
_PLAIN_DELETE = codec.encode(_DELETE_OPTIONS)


class Change(msgspec.Struct, frozen=True, gc=False):
    """What a write changes. verb: create, update, patch or delete. name: "" where the server makes one. uid: the
    precondition of a deletion. body: of a creation."""

    verb: str
    resource: Resource[Any]
    namespace: str
    name: str
    subresource: str = ""
    uid: str = ""
    body: bytes = b""


class InvalidName(ValueError):
    """A name or namespace in a reference cannot be part of a URL: no object can have it."""

    reason = "InvalidName"


def object_path(resource: Resource[Any], namespace: str, name: str, subresource: str) -> str:
    """The path of one object. Raises InvalidName, also where it would be that of a collection."""
    if not name:
        raise InvalidName("resource name may not be empty")
    if resource.namespaced and not namespace:
        raise InvalidName("an empty namespace may not be set when a resource name is provided")
    for what, segment in (("namespace", namespace), ("resource name", name)):
        problems = path_segment(segment)
        if problems:
            raise InvalidName(f"invalid {what} {quote(segment)}: [{' '.join(problems)}]")
    return resource.gvr.path(namespace, name, subresource)


def given(pairs: Query) -> Query:
    """The pairs that have a value."""
    return tuple(pair for pair in pairs if pair[1])


def delete_options(uid: str, resource_version: str, propagation: str | None, grace_s: int | None) -> bytes:
    """A DeleteOptions document."""
    preconditions = dict(given((("uid", uid), ("resourceVersion", resource_version))))
    if not preconditions and propagation is None and grace_s is None:
        return _PLAIN_DELETE
    options: Doc = dict(_DELETE_OPTIONS)
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    if preconditions:
        options["preconditions"] = preconditions
    if propagation is not None:
        options["propagationPolicy"] = propagation
    return codec.encode(options)
