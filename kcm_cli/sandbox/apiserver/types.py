"""Types that all parts of the API server share: resources, users, attributes of requests, errors."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import UNAUTHENTICATED
from kcm_cli.machinery.codec import Doc

Tree = dict[str, Any]
"""A document, or a part of one, that was decoded by its schema: its fields have the right types."""


class ResourceInfo(msgspec.Struct, frozen=True):
    """A served resource, built-in or custom, as discovery lists it."""

    gvr: GVR
    kind: str
    singular: str
    namespaced: bool
    verbs: frozenset[str]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    custom: bool = False

    @property
    def api_version(self) -> str:
        return self.gvr.group_version

    @property
    def named(self) -> tuple[str, str]:
        """Group and plural, as errors name it."""
        return self.gvr.group, self.gvr.plural


LONGEST_KEY = 4096
"""Results for requests with longer names and paths, which clients choose, are not cached."""


class User(msgspec.Struct, frozen=True):
    """The user of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    @property
    def length(self) -> int:
        """The number of characters in the names of the user and its groups."""
        return len(self.name) + sum(map(len, self.groups))

    def info(self) -> Doc:
        """The user as an ``authentication.k8s.io/v1`` UserInfo."""
        info: Doc = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(self.extra[key]) for key in sorted(self.extra)}
        return info


NOBODY = User("")
"""Of requests whose credentials are not accepted."""
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))


class RequestInfo(msgspec.Struct, frozen=True):
    """The meaning of a path and method. ``verb``: the API verb (get, list, watch, create, update, patch, delete,
    deletecollection), or the method in lower case for a path that is no resource."""

    verb: str
    path: str
    is_resource: bool
    group: str = ""
    version: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def resource(self) -> str:
        """``pods``, ``pods/status``; empty for nonResourceURLs."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


class Attributes(msgspec.Struct):
    """The attributes of a request for admission. Mutating plugins change ``obj`` in place, and nobody changes ``old``.

    operation: CREATE, UPDATE, DELETE or CONNECT.
    """

    operation: str
    resource: ResourceInfo
    subresource: str
    namespace: str
    name: str
    user: User
    obj: Doc | None
    old: Doc | None
    dry_run: bool = False
    options: Doc = msgspec.field(default_factory=dict)
    warnings: list[str] = msgspec.field(default_factory=list)


class FieldError(msgspec.Struct, frozen=True):
    """One cause of a 422. ``type``: FieldValueInvalid, FieldValueRequired, FieldValueNotSupported,
    FieldValueForbidden, FieldValueDuplicate, FieldValueNotFound, FieldValueTooLong, FieldValueTooMany,
    FieldValueTypeInvalid. ``message``: upstream's text without the field's path
    (``Invalid value: "x": must be ...``)."""

    type: str
    field: str
    message: str

    def __post_init__(self) -> None:
        room = _room.get()
        if room is None:
            return
        room.left -= len(self.field) + len(self.message)
        if room.left < 0:
            shown = self.message if len(self.message) <= _SHOWN else f"{self.message[:_SHOWN]}…"
            room.left = _SHOWN + len(self.field) + len(self.message)  # for this one
            raise TooManyErrors(FieldError(self.type, self.field, shown))


class _Room(msgspec.Struct):
    left: int


_room: ContextVar[_Room | None] = ContextVar("room", default=None)
_SHOWN, _MOST_TEXT = 1000, 1 << 22


class TooManyErrors(Exception):
    """The errors of an object would take more memory than a response should: ``error`` is one of them, cut."""

    def __init__(self, error: FieldError) -> None:
        super().__init__()
        self.error = error


@contextmanager
def limited_errors() -> Iterator[None]:
    """Limit the texts of all errors that are made meanwhile. Raises TooManyErrors.

    Some errors print the whole list that each of its items is in.
    """
    token = _room.set(_Room(_MOST_TEXT))
    try:
        yield
    finally:
        _room.reset(token)


Errors = Iterable[FieldError]
"""The errors that a rule returns, in upstream's order. It may be a generator, which can be read once."""


class ApiError(Exception):
    """An error response. ``status``: its body, a metav1.Status."""

    def __init__(self, code: int, reason: str, message: str, *, details: Doc | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status: Doc = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
        }
        if reason:
            self.status["reason"] = reason
        if details is not None:
            self.status["details"] = details
        self.status["code"] = code
        self.headers: dict[str, str] = {}
