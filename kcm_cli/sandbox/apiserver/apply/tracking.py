"""Managed fields on create, update and patch: the writer becomes the only owner of the fields that it changes.

Cost: one comparison of the two documents, which skips equal parts, and operations on the sets of the managers whose
fields changed. Unchanged entries are written as they were read.

upstream: apimachinery pkg/util/managedfields/internal/{fieldmanager,structuredmerge,stripmeta}.go,
sigs.k8s.io/structured-merge-diff merge/update.go
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol, cast

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.same import same
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.apply import typed
from kcm_cli.sandbox.apiserver.apply.compare import Changes, Comparer, taken
from kcm_cli.sandbox.apiserver.apply.elements import NoElement
from kcm_cli.sandbox.apiserver.apply.fieldset import SELF, Fields, union, with_atoms
from kcm_cli.sandbox.apiserver.apply.managers import (
    UPDATE,
    BadManagedFields,
    ManagerId,
    Managers,
    Owned,
    build_manager_id,
    cap,
    is_reset,
    read,
    read_stated,
    release,
    write,
)
from kcm_cli.sandbox.apiserver.apply.resets import Writable
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo

_STRIPPED = frozenset(
    (
        "f:name",
        "f:namespace",
        "f:creationTimestamp",
        "f:selfLink",
        "f:uid",
        "f:clusterName",
        "f:generation",
        "f:managedFields",
        "f:resourceVersion",
    )
)


class WriteTarget(msgspec.Struct, frozen=True):
    """The target of a write: a resource or subresource, its type, a normalised object without fields (``empty``), which
    must not be changed, and the fields that its writers can own."""

    resource: ResourceInfo
    subresource: str
    node: Node
    empty: Doc
    writable: Writable

    @property
    def version(self) -> str:
        return self.resource.api_version

    def manager(self, name: str, operation: str) -> ManagerId:
        return build_manager_id(name, operation, self.version, self.subresource)


class Untyped(Exception):
    """An object cannot be converted to the version of a manager, or does not match its type. The text is upstream's."""


class Versioned(msgspec.Struct, frozen=True):
    """An object in an apiVersion, and its type."""

    version: str
    node: Node
    doc: Doc


class Versions(Protocol):
    """Converts objects to the API versions of managers."""

    def convert(self, resource: ResourceInfo, doc: Doc, versions: tuple[str, str], *, stored: bool) -> Versioned | None:
        """The object in the second of two apiVersions (it is in the first); None if that is not served. Changes
        nothing, and neither prunes nor defaults custom objects.

        stored: whether an earlier version of the object is. Raises Unconverted, and ApiError if a webhook fails.
        """


class Tracker:
    """Tracks managed fields for the types of one server."""

    def __init__(self, versions: Versions | None = None) -> None:
        self.comparer = Comparer()
        self._versions = versions

    def update(
        self, place: WriteTarget, old: Doc | None, new: Doc, manager: str, now: datetime, stated: Doc | None = None
    ) -> None:
        """Set the managedFields of ``new``. ``old`` is None for a create. ``stated``: see ``Comparer.emptied``."""
        meta = cast("Doc", new["metadata"])
        given = meta.pop("managedFields", None)
        managers = _known_managers(old, given, from_request=not place.subresource)
        if not managers and old is not None:
            return  # not tracked, until the first apply
        managers = {manager_id: owned for manager_id, owned in managers.items() if owned.fields}
        before = without_managed(old) if old is not None else place.empty
        manager_id = place.manager(manager, UPDATE)
        try:
            if place.resource.custom and _misshapen(place.node, before, new):
                return  # as upstream: values of wrong types cannot be tracked
            managers = self.reconciled(place, managers, before)
            changes = self.comparer.compare(place.node, before, new)
            if stated is not None and old is not None:
                changes.modified = union(changes.modified, self.comparer.emptied(place.node, before, new, stated))
            self.share(place, managers, changes, before, new)
        except (NoElement, Untyped):
            return  # as upstream: an object that cannot be tracked or converted loses its owners
        mine = stripped(taken(changes))
        if mine:
            previous = managers.get(manager_id)
            fields = union(mine, previous.fields) if previous is not None else mine
            managers[manager_id] = Owned(fields, place.version, format_time(now))
        cap(managers)
        if managers:
            meta["managedFields"] = write(managers)

    def share(
        self,
        place: WriteTarget,
        managers: Managers,
        changes: Changes,
        before: Doc,
        after: Doc,
        *,
        keep: ManagerId | None = None,
    ) -> None:
        """Remove the changed fields from all managers but ``keep``, and the managers whose version is not served.
        Narrows ``changes``."""
        place.writable.narrow(changes)
        if not changes and all(owned.version == place.version for owned in managers.values()):
            return
        by_version: dict[str, Changes | None] = {place.version: changes}
        for manager_id, owned in list(managers.items()):
            if manager_id == keep:
                continue
            if owned.version not in by_version:
                by_version[owned.version] = self.changes_in(place, owned.version, before, after)
            seen = by_version[owned.version]
            rest = release(owned, seen.added, seen.modified, seen.removed) if seen is not None else None
            if rest is None:
                del managers[manager_id]
            else:
                managers[manager_id] = rest

    def changes_in(self, place: WriteTarget, version: str, before: Doc, after: Doc) -> Changes | None:
        """The changes in another version of the API; None if that is not served. Raises Untyped."""
        stored = before is not place.empty
        earlier = self._seen(place, before, version, stored, "failed to convert old object: ")
        later = self._seen(place, after, version, stored, "failed to convert new object: ")
        if earlier is None or later is None:
            return None
        changes = self.comparer.compare(later.node, earlier.doc, later.doc)
        place.writable.narrow(changes)
        return changes

    def _seen(self, place: WriteTarget, doc: Doc, version: str, stored: bool, failed: str) -> Versioned | None:
        try:
            return self.in_version(place, Versioned(place.version, place.node, doc), version, stored=stored)
        except Untyped as error:
            raise Untyped(f"{failed}{error}") from None

    def in_version(self, place: WriteTarget, seen: Versioned, version: str, *, stored: bool) -> Versioned | None:
        """An object in another apiVersion; None if that is not served. Raises Untyped."""
        if seen.version == version:
            return seen
        if self._versions is None:
            return None
        try:
            found = self._versions.convert(place.resource, seen.doc, (seen.version, version), stored=stored)
        except ApiError as error:
            raise Untyped(str(error)) from None
        if found is not None and (wrong := typed.listed(typed.problems(found.node, found.doc))):
            raise Untyped(wrong)
        return found

    def reconciled(self, place: WriteTarget, managers: Managers, live: Doc) -> Managers:
        """The managers of a custom object, whose schema may have changed since: fields that have become atomic are
        owned as a whole. Those whose version is not served are removed. Raises Untyped.

        upstream: merge/update.go#reconcileManagedFieldsWithSchemaChanges
        """
        if not place.resource.custom:
            return managers
        here, found = Versioned(place.version, place.node, live), dict(managers)
        for manager_id, owned in managers.items():
            seen = self.in_version(place, here, owned.version, stored=live is not place.empty)
            if seen is None:
                del found[manager_id]
            elif (fields := with_atoms(owned.fields, seen.node)) is not owned.fields:
                found[manager_id] = Owned(fields, owned.version, owned.time)
        return found


def _known_managers(old: Doc | None, given: object, *, from_request: bool) -> Managers:
    """The managers in the request, or those of the live object if the request has none that are valid."""
    live = cast("Doc", old["metadata"]).get("managedFields") if old is not None else None
    if from_request:
        if is_reset(given):
            return {}
        if given and given != live:
            try:
                return read_stated(given)
            except BadManagedFields:
                pass
    try:
        return read(live)
    except BadManagedFields:
        return {}


def without_managed(doc: Doc) -> Doc:
    """The document without managedFields. The rest is shared."""
    meta = cast("Doc", doc.get("metadata", {}))
    if "managedFields" not in meta:
        return doc
    return {**doc, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


def stripped(fields: Fields) -> Fields:
    """Remove the fields that have no owner: apiVersion, kind, and metadata that the server sets."""
    out = {key: value for key, value in fields.items() if key not in ("f:apiVersion", "f:kind")}
    meta = out.get("f:metadata")
    if meta is not None:
        kept = {key: value for key, value in meta.items() if key != SELF and (key not in _STRIPPED or value)}
        if kept:
            out["f:metadata"] = kept
        else:
            del out["f:metadata"]
    return out


def settle_times(old: Doc, new: Doc) -> None:
    """Set the old times of managedFields if nothing else differs, so that a write without changes remains one."""
    before = cast("list[Doc]", cast("Doc", old["metadata"]).get("managedFields") or [])
    after = cast("list[Doc]", cast("Doc", new["metadata"]).get("managedFields") or [])
    if len(before) != len(after) or not after or before == after:
        return
    if any(_timeless(left) != _timeless(right) for left, right in zip(before, after, strict=True)):
        return
    earlier, later = without_managed(old), without_managed(new)
    if earlier == later or same(earlier, later):
        cast("Doc", new["metadata"])["managedFields"] = before


def _misshapen(node: Node, *docs: Doc) -> bool:
    """Whether custom objects, which are not validated yet, have values of wrong types."""
    return any(typed.problems(node, doc, duplicates=True) for doc in docs)


def _timeless(entry: Mapping[str, object]) -> Doc:
    return {key: value for key, value in entry.items() if key != "time"}
