"""The metadata of objects: ObjectMeta, owner references, keys.

Views are frozen and slotted, and camelCase in JSON. An absent field is ``None``, or an empty container if the API does
not distinguish these. Times are kept as text (RFC 3339 in UTC) and parsed where they are needed (``machinery.times``),
since most are never read.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

NO_LABELS: Mapping[str, str] = {}


class View(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The base of all views: frozen, camelCase, unknown fields are skipped, not tracked by Python's garbage
    collector.

    SHARED: these are equal in many objects, which may share them.
    """

    SHARED: ClassVar[bool] = False


class OwnerReference(View, frozen=True, gc=False):
    """metav1.OwnerReference."""

    SHARED: ClassVar[bool] = True

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(View, frozen=True, gc=False):
    """The fields of metav1.ObjectMeta that controllers read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    generate_name: str = ""


class Object(View, frozen=True, gc=False, kw_only=True):
    """The base of all objects: metadata, and the raw document if objects of the kind are updated.

    raw: set by the decoder (``api.resource.Resource.keeps_raw``), and not part of the JSON.
    """

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    raw: bytes | None = msgspec.field(default=None, name="<raw>")

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """metadata.namespace; empty for objects of the cluster."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """metadata.uid."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for cluster-scoped objects."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def version(self) -> int:
        """The resourceVersion as a number, which grows with every write; 0 if it is not a number."""
        return number_of(self.metadata.resource_version)

    @property
    def labels(self) -> Mapping[str, str]:
        """metadata.labels, at least empty."""
        return self.metadata.labels or NO_LABELS

    @property
    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations, at least empty."""
        return self.metadata.annotations or NO_LABELS

    @property
    def deleting(self) -> bool:
        """Whether the object has a deletionTimestamp."""
        return self.metadata.deletion_timestamp is not None


class PartialObject(Object, frozen=True, gc=False, kw_only=True):
    """The metadata of an object of any kind (PartialObjectMetadata)."""

    api_version: str = ""
    kind: str = ""


class SlimMeta(View, frozen=True, gc=False):
    """The fields of ObjectMeta that say which object it is, whose, and whether it goes; others are not decoded."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class SlimObject(Object, frozen=True, gc=False, kw_only=True):
    """An object with SlimMeta only."""

    metadata: SlimMeta = msgspec.field(default_factory=SlimMeta)  # type: ignore[assignment]  # fewer fields, same names


_MAX_DIGITS = 100
"""More than any server counts to, and fewer than Python refuses to read."""


def number_of(version: str) -> int:
    """A resourceVersion as a number; 0 if it is not a number, which aggregated API servers may use."""
    return int(version) if version.isascii() and version.isdecimal() and len(version) <= _MAX_DIGITS else 0


def object_key(namespace: str, name: str) -> str:
    """The ``key`` of the object with this name."""
    return f"{namespace}/{name}" if namespace else name


def split_key(key: str) -> tuple[str, str]:
    """``namespace/name`` as (namespace, name); the namespace is empty for cluster-scoped objects."""
    namespace, slash, name = key.rpartition("/")
    return (namespace, name) if slash else ("", key)


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner reference marked as the controller, if any."""
    for ref in obj.metadata.owner_references:
        if ref.controller:
            return ref
    return None
