"""The cluster as it is in a snapshot that was taken after a plan."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kcm_cli.api.short_names import kind_in
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.meta import OwnerReference, View
from kcm_cli.machinery.times import parse_time
from kcm_cli.plan.answer import Object, owner_of
from kcm_cli.plan.snapshot import Item, Snapshot

_OF_CLAIMS = frozenset(("PersistentVolume", "VolumeAttachment"))
"""Kinds without a namespace of which those for other namespaces are left out of a snapshot."""


class Managed(View, frozen=True, gc=False):
    """An entry of ``managedFields``."""

    manager: str = ""
    time: str = ""
    subresource: str = ""


class Meta(View, frozen=True, gc=False):
    """The metadata that are compared."""

    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: tuple[OwnerReference, ...] = ()
    managed_fields: tuple[Managed, ...] = ()


class _Head(View, frozen=True, gc=False):
    metadata: Meta = Meta()


class _Claim(View, frozen=True, gc=False):
    namespace: str = ""


class _VolumeSpec(View, frozen=True, gc=False):
    claim_ref: _Claim | None = None


class _Volume(View, frozen=True, gc=False):
    spec: _VolumeSpec = _VolumeSpec()


class Present:
    """The cluster as it is. since, version: when the plan's snapshot was taken. Times of objects are whole seconds: of
    what happened in that second, versions tell. spaces: the namespaces whose objects were read; None for all."""

    def __init__(self, snapshot: Snapshot, since: datetime, version: str) -> None:
        self.snapshot = snapshot
        self._since, self._version = since, parse_int64(version)
        self.kinds = {kind_in(one.gvr.group, one.kind) for one in snapshot.collections.values()}
        self.spaces = frozenset(gap.namespace for gap in snapshot.gaps if gap.partial) or None
        self.items: dict[Object, Item] = {}
        self._heads: dict[Object, Meta] = {}
        self._placed: dict[tuple[str, str], list[Object]] = {}
        self._made: dict[tuple[str, str], dict[str, list[Object]]] = {}
        for collection in snapshot.collections.values():
            kind = kind_in(collection.gvr.group, collection.kind)
            for item in collection.items:
                about = Object(kind, item.namespace, item.name)
                self.items[about] = item
                self._placed.setdefault((about.kind, about.namespace), []).append(about)

    def unread(self, about: Object) -> str:
        """Why it is not known whether an object is there; "" if that is known."""
        if about in self.items:
            return ""
        if about.kind not in self.kinds:
            return "objects of this kind were not read"
        space = about.name if about.kind == "Namespace" else about.namespace
        left_out = self.spaces is not None and (about.kind in _OF_CLAIMS or space not in {*self.spaces, ""})
        return "other namespaces were not read" if left_out else ""

    def space(self, about: Object) -> str:
        """The namespace that an object serves: of a volume that of its claim."""
        if about.kind != "PersistentVolume":
            return about.namespace
        volume = codec.decode_or_none(self.items[about].data, _Volume)
        claim = volume.spec.claim_ref if volume is not None else None
        return claim.namespace if claim is not None else ""

    def meta(self, about: Object) -> Meta:
        """Its metadata; empty if they cannot be read."""
        found = self._heads.get(about)
        if found is None:
            head = codec.decode_or_none(self.items[about].data, _Head)
            found = self._heads[about] = Meta() if head is None else head.metadata
        return found

    def is_new(self, about: Object) -> bool:
        """Whether it was created after the plan's snapshot."""
        meta = self.meta(about)
        return self.is_later(meta, meta.creation_timestamp)

    def is_later(self, meta: Meta, time: str) -> bool:
        """Whether a time of an object is after the plan's snapshot."""
        version = parse_int64(meta.resource_version)
        if version is not None and self._version is not None and version <= self._version:
            return False  # it has not changed since
        return time_of(time) >= self._since

    def made(self, kind: str, namespace: str, owner: str) -> Sequence[Object]:
        """The new objects of an owner."""
        by_owner = self._made.get((kind, namespace))
        if by_owner is None:
            by_owner = self._made[kind, namespace] = {}
            for about in filter(self.is_new, self._placed.get((kind, namespace), ())):
                by_owner.setdefault(self.owner(about), []).append(about)
        return by_owner.get(owner, ())

    def owner(self, about: Object) -> str:
        """``Kind/name`` of what it belongs to."""
        return owner_of(self.meta(about).owner_references)

    def changed(self, about: Object) -> Managed | None:
        """The last change of more than its status since the plan."""
        meta = self.meta(about)
        found = [one for one in meta.managed_fields if one.subresource != "status"]
        last = max(found, key=lambda one: time_of(one.time), default=None)
        return last if last is not None and self.is_later(meta, last.time) else None


_EPOCH = datetime.min.replace(tzinfo=parse_time("2000-01-01T00:00:00Z").tzinfo) + timedelta(days=1)


def time_of(text: str) -> datetime:
    """A time of an object; long ago for what is no time."""
    try:
        return parse_time(text)
    except FormatError:
        return _EPOCH
