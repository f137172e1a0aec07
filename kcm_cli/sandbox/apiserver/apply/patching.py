"""The interface of this package for the registry: patches, server-side apply and managed fields."""

from collections.abc import Callable
from datetime import datetime
from typing import cast

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply import patches
from kcm_cli.sandbox.apiserver.apply.patches import Patched
from kcm_cli.sandbox.apiserver.apply.resets import Writable
from kcm_cli.sandbox.apiserver.apply.serverside import ServerSide, described
from kcm_cli.sandbox.apiserver.apply.tracking import Tracker, Versions, WriteTarget
from kcm_cli.sandbox.apiserver.schema import Schemas, Target, target_of
from kcm_cli.sandbox.apiserver.schema.bodies import WARN
from kcm_cli.sandbox.apiserver.schema.decode import Normalizers
from kcm_cli.sandbox.apiserver.types import ResourceInfo


class Applied(msgspec.Struct, frozen=True):
    """A configuration that a field manager applies. ``force``: it takes fields from other managers."""

    doc: Doc
    manager: str
    force: bool = False


class Patching:
    """Patches objects and tracks their managed fields, for the kinds of one server."""

    def __init__(
        self, schemas: Schemas, writable: Callable[[ResourceInfo, str], Writable], versions: Versions | None = None
    ) -> None:
        """writable: the fields that writers of a resource or subresource can own."""
        self._writable = writable
        self._schemas = schemas
        self._patches = patches.Patches(schemas)
        self._tracker = Tracker(versions)
        self._places: dict[tuple[int, str], WriteTarget] = {}
        self._seen = schemas.changes
        self._server_side = ServerSide(self._tracker)

    def patch(
        self,
        resource: ResourceInfo,
        current: Doc,
        body: bytes,
        content_type: str,
        mode: str = WARN,
        *,
        target: Target | None = None,
    ) -> Patched:
        """Apply a JSON, merge or strategic merge patch.

        ``current``: a copy of the live object in the version of the path, with kind and apiVersion; it is changed.
        The result is normalised, without defaults. Raises ApiError: 400 for a malformed patch, 415 for another content
        type, 422 for a patch that does not apply or whose result cannot be decoded, 500 for some strategic merge
        patches, as upstream.
        """
        return self._patches.apply(target or target_of(resource), current, body, content_type, mode or WARN)

    def stated(self, resource: ResourceInfo, current: Doc, body: bytes, content_type: str) -> Doc:
        """The result of a patch that applies, before it is decoded. Changes ``current``."""
        return self._patches.merged(target_of(resource), current, body, content_type)

    def track(
        self,
        at: tuple[ResourceInfo, str],
        old: Doc | None,
        new: Doc,
        manager: str,
        now: datetime,
        stated: Doc | None = None,
    ) -> None:
        """Set the managedFields of ``new``, for a create (``old`` is None), update or patch. at: resource, subresource.

        To be called after decoding and defaulting, before admission and the strategy, whose changes have no owner. An
        empty ``managedFields`` in the request removes all managers. ``stated``: ``new`` as the client wrote it, if that
        has empty lists.
        """
        self._tracker.update(self.place(*at), old, new, manager, now, stated)

    def apply(
        self,
        resource: ResourceInfo,
        subresource: str,
        live: Doc | None,
        applied: Applied,
        now: datetime,
    ) -> Doc:
        """The live object (None if there is none) with the configuration applied: normalised, with managedFields,
        without defaults.

        Changes no argument. Raises ApiError: 409 for conflicts, 400 and 500 as upstream.
        """
        doc, managed = self._merged(resource, subresource, live, applied, now)
        fresh = cast("Doc", patches.copy(doc))
        fresh = self._schemas.finish_applied(target_of(resource), fresh, described(applied.doc))
        meta = cast("Doc", fresh.setdefault("metadata", {}))
        if managed:
            meta["managedFields"] = managed
        return fresh

    def stated_by_apply(
        self, resource: ResourceInfo, subresource: str, live: Doc | None, applied: Applied, now: datetime
    ) -> Doc:
        """The same for a configuration that applies, before it is normalised."""
        return self._merged(resource, subresource, live, applied, now)[0]

    def _merged(
        self, resource: ResourceInfo, subresource: str, live: Doc | None, applied: Applied, now: datetime
    ) -> tuple[Doc, list[Doc]]:
        place = self.place(resource, subresource)
        return self._server_side.apply(place, live, applied.doc, applied.manager, force=applied.force, now=now)

    def place(self, resource: ResourceInfo, subresource: str) -> WriteTarget:
        """The target of a write."""
        if self._seen != self._schemas.changes:  # custom kinds were added, changed or removed
            self._places.clear()
            self._seen = self._schemas.changes
        place = self._places.get((id(resource), subresource))
        if place is None:
            target = target_of(resource)
            node = self._schemas.node(target)
            assert node is not None, f"no type for {resource.kind}"
            normalizers = Normalizers() if self._schemas.is_custom(target) else self._schemas.normalizers
            empty, writable = cast("Doc", normalizers.run(node, {})), self._writable(resource, subresource)
            place = WriteTarget(resource, subresource, node, empty, writable)
            self._places[id(resource), subresource] = place  # the place holds the resource, so its id is not reused
        return place
