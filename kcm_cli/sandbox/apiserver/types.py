"""The words that the parts of the API server share: a resource, a user, the attributes of a request, an error."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc

Tree = dict[str, Any]
"""A document, or a part of one, that has passed its schema: the types of its fields are known to be right."""


class ResourceInfo(msgspec.Struct, frozen=True):
    """One served resource, built in or from a CustomResourceDefinition. Filled from discovery data."""

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
    def group_resource(self) -> str:
        """``deployments.apps``, or ``pods`` in the core group: as error texts name it."""
        return f"{self.gvr.plural}.{self.gvr.group}" if self.gvr.group else self.gvr.plural


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def info(self) -> Doc:
        """As a UserInfo of the API."""
        info: Doc = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(self.extra[key]) for key in sorted(self.extra)}
        return info


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class RequestInfo(msgspec.Struct, frozen=True):
    """What a path and method mean. ``verb`` is the API verb (get, list, watch, create, update, patch, delete,
    deletecollection) or the lower-case method for a path that is no resource."""

    verb: str
    path: str
    is_resource: bool
    group: str = ""
    version: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Attributes(msgspec.Struct):
    """A write as admission sees it. Mutating plugins change ``obj`` in place; ``old`` is never changed."""

    operation: str  # CREATE, UPDATE, DELETE, CONNECT
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
    FieldValueTypeInvalid. ``message`` is the text without the field's path, as upstream words it
    (``Invalid value: "x": must be ...``)."""

    type: str
    field: str
    message: str


Errors = Iterable[FieldError]
"""What a rule gives, in upstream's order: a list, or a generator that is read once."""


class ApiError(Exception):
    """An answer other than success. ``status`` is the metav1.Status document that the client gets."""

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


class Dropped(Exception):
    """The connection ends without an answer, or in the middle. ``effect``: whether the request was carried out."""

    def __init__(self, *, effect: bool) -> None:
        super().__init__("injected: the connection was broken")
        self.effect = effect


def invalid(resource: ResourceInfo, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 Invalid with its causes, worded as upstream's NewInvalid."""
    texts = list(dict.fromkeys(f"{e.field}: {e.message}" for e in errors))  # the causes keep what is said twice
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    group = resource.gvr.group
    qualified = f"{resource.kind}.{group}" if group else resource.kind
    details: Doc = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = resource.kind
    details["causes"] = [{"reason": e.type, "message": e.message, "field": e.field} for e in errors]
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {joined}', details=details)
