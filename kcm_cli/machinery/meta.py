"""What every object has: metadata, owner references, keys.

Views are frozen, slotted and camelCase on the wire. Absent is ``None`` or an empty container where the API makes
no difference between the two. Times are kept as the text that came (RFC 3339, always UTC), and parsed where a
rule needs them (``machinery.times``): most are never looked at.
"""

from collections.abc import Mapping

import msgspec

NO_LABELS: Mapping[str, str] = {}


class View(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all views: frozen, camelCase, unknown fields skipped, not tracked by the cyclic collector."""


class OwnerReference(View, frozen=True, gc=False):
    """metav1.OwnerReference."""

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
    """Any object: metadata, and the raw document where its kind is written back.

    ``raw`` is set by the decoder of kinds that keep it (``api.resource.Resource.keeps_raw``) and is never on the
    wire under this name.
    """

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    raw: bytes | None = msgspec.field(default=None, name="<raw>")

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for cluster-scoped objects."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def version(self) -> int:
        """The resource version as a number, which grows with every write; 0 for one that is none."""
        return number_of(self.metadata.resource_version)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels or NO_LABELS

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations or NO_LABELS

    @property
    def deleting(self) -> bool:
        """Whether deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None


class PartialObject(Object, frozen=True, gc=False, kw_only=True):
    """Metadata of an object of any kind (PartialObjectMetadata)."""

    api_version: str = ""
    kind: str = ""


_MAX_DIGITS = 100
"""More than any server counts to, and fewer than Python refuses to read."""


def number_of(version: str) -> int:
    """A resource version as a number; 0 for one that is none, as an aggregated API server may have."""
    return int(version) if version.isdecimal() and len(version) <= _MAX_DIGITS else 0


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
