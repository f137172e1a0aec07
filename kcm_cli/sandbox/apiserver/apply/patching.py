"""What the registry asks of this package: patches, and who owns which field."""

from datetime import datetime
from typing import cast

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply import patches, tracking
from kcm_cli.sandbox.apiserver.apply.patches import Patched
from kcm_cli.sandbox.apiserver.apply.serverside import ServerSide, described
from kcm_cli.sandbox.apiserver.apply.tracking import Place, Tracker, Versions
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
    """Patches of one server's kinds."""

    def __init__(self, schemas: Schemas, versions: Versions | None = None) -> None:
        self._schemas = schemas
        self._patches = patches.Patches(schemas)
        self._tracker = Tracker(versions)
        self._places: dict[tuple[int, str], Place] = {}
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

        ``current`` is the live object (in the path's version, kind and apiVersion set) as a copy of the
        caller's own: it is changed. The result is normalised, but has no defaults. Raises ApiError: 400 for a
        malformed patch, 422 for one that does not apply or makes an object of wrong type, 500 as the real
        server does for some strategic patches, 415 for another content type.
        """
        return self._patches.apply(target or target_of(resource), current, body, content_type, mode or WARN)

    def stated(self, resource: ResourceInfo, current: Doc, body: bytes, content_type: str) -> Doc:
        """What a patch that applies makes of the live object, not decoded. Changes ``current``."""
        return self._patches.merged(target_of(resource), current, body, content_type)

    def track_update(
        self, resource: ResourceInfo, subresource: str, old: Doc | None, new: Doc, manager: str, now: datetime
    ) -> None:
        """Set new's managedFields for a create (``old`` is None), update or patch.

        To be called with the decoded and defaulted object, before admission and the strategy: what those
        change belongs to nobody. An empty ``managedFields`` in the request forgets all owners. Changes
        ``new``'s metadata.
        """
        self._tracker.update(self._place(resource, subresource), old, new, manager, now)

    def applied(self, resource: ResourceInfo, body: bytes, mode: str = WARN, warnings: list[str] | None = None) -> Doc:
        """The configuration in the body of an apply patch (YAML or JSON). Raises ApiError (400).

        Repeated keys are refused in mode Strict, and added to ``warnings`` in mode Warn.
        """
        return patches.read_configuration(body, mode or WARN, warnings if warnings is not None else [])

    def apply(
        self,
        resource: ResourceInfo,
        subresource: str,
        live: Doc | None,
        applied: Applied,
        now: datetime,
    ) -> Doc:
        """The live object (None: none yet) with the configuration applied, normalised, managedFields set.

        Defaults are not set; after they are, ``settle_times`` takes back times that nothing else justifies.
        Changes none of its arguments. Raises ApiError: 409 for conflicts, 400 and 500 as the real server
        does.
        """
        place = self._place(resource, subresource)
        doc, managed = self._server_side.apply(place, live, applied.doc, applied.manager, force=applied.force, now=now)
        fresh = cast("Doc", patches.copy(doc))
        fresh = self._schemas.finish_applied(target_of(resource), fresh, described(applied.doc))
        if managed:
            cast("Doc", fresh["metadata"])["managedFields"] = managed
        return fresh

    def settle_times(self, old: Doc, new: Doc) -> None:
        """After defaulting and admission of an update, patch or apply: if ``new`` differs from ``old`` in
        nothing but the times of managedFields, give it back the old ones. Changes ``new``'s metadata.
        """
        tracking.settle_times(old, new)

    def _place(self, resource: ResourceInfo, subresource: str) -> Place:
        if self._seen != self._schemas.changes:  # custom types have come, gone or changed
            self._places.clear()
            self._seen = self._schemas.changes
        place = self._places.get((id(resource), subresource))
        if place is None:
            target = target_of(resource)
            node = self._schemas.node(target)
            assert node is not None, f"no type for {resource.kind}"
            normalizers = Normalizers() if self._schemas.is_custom(target) else self._schemas.normalizers
            place = Place(resource, subresource, node, cast("Doc", normalizers.run(node, {})))
            self._places[id(resource), subresource] = place  # the place keeps the resource, so its id stays its own
        return place
