"""Server-side apply: merges a manager's configuration into the live object, and updates the managers.

upstream: sigs.k8s.io/structured-merge-diff merge/update.go#Apply,
apimachinery pkg/util/managedfields/internal/{structuredmerge,skipnonapplied,lastappliedmanager}.go
"""

from datetime import datetime
from typing import cast

import msgspec
from msgspec.structs import replace

from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.apply import typed
from kcm_cli.sandbox.apiserver.apply.compare import Changes, taken
from kcm_cli.sandbox.apiserver.apply.elements import NoElement, text
from kcm_cli.sandbox.apiserver.apply.fieldset import (
    Fields,
    difference,
    intersection,
    ordered,
    paths,
    union,
    with_named_fields,
)
from kcm_cli.sandbox.apiserver.apply.managers import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    BadManagedFields,
    ManagerId,
    Managers,
    Owned,
    read,
    write,
)
from kcm_cli.sandbox.apiserver.apply.tracking import (
    Tracker,
    Untyped,
    Versioned,
    WriteTarget,
    stripped,
    without_managed,
)
from kcm_cli.sandbox.apiserver.types import ApiError

KUBECTL = "kubectl"
Conflicts = list[tuple[ManagerId, Owned]]


class ApplyConflict(Exception):
    """The configuration changes fields of other managers. ``conflicts``: these managers, each with those fields."""

    def __init__(self, conflicts: Conflicts) -> None:
        super().__init__()
        self.conflicts = conflicts


class Apply(msgspec.Struct, frozen=True):
    """An apply request. Neither ``live`` nor ``config`` has managedFields."""

    place: WriteTarget
    manager_id: ManagerId
    live: Doc
    config: Doc
    force: bool


class _Result(msgspec.Struct, frozen=True):
    """``doc`` is None if the configuration changes nothing."""

    doc: Doc | None
    managers: Managers


class ServerSide:
    """Applies configurations to objects of one server's types."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def apply(
        self, place: WriteTarget, live: Doc | None, config: Doc, manager: str, *, force: bool, now: datetime
    ) -> tuple[Doc, list[Doc]]:
        """The merged document (neither normalised nor defaulted) and its managedFields. Raises ApiError."""
        check_config(place, config)
        managers = self._live_managers(place, live, now)
        if live is not None and place.resource.custom:
            _check_live(place, live)
        before = without_managed(live) if live is not None else place.empty
        manager_id = place.manager(manager, APPLY)
        try:
            managers = self._tracker.reconciled(place, managers, before)
            result = self._run(Apply(place, manager_id, before, config, force), managers)
        except ApplyConflict as conflict:
            raise conflict_error(conflict.conflicts) from None
        except Untyped as error:
            raise ApiError(500, "", str(error)) from None
        except NoElement as error:
            raise ApiError(500, "", f"failed to merge config: {error}") from None
        doc, managers = result.doc, result.managers
        if doc is not None and manager_id in managers:
            managers[manager_id] = Owned(managers[manager_id].fields, place.version, format_time(now))
        if doc is None:
            doc = before
        if manager == KUBECTL:
            doc = _with_last_applied(doc, config)
        return doc, write(managers) if managers else []

    def _live_managers(self, place: WriteTarget, live: Doc | None, now: datetime) -> Managers:
        """The managers of the live object. If it has none, ``before-first-apply`` owns its fields."""
        if live is None:
            return {}
        try:
            managers = read(cast("Doc", live["metadata"]).get("managedFields"))
        except BadManagedFields as error:
            raise ApiError(500, "", f"failed to decode managed fields: {error}") from None
        if not managers:
            if place.resource.custom and (problems := _listed(place, live)):
                raise _unconvertible(live, problems)
            try:
                changes = self._tracker.comparer.compare(place.node, place.empty, without_managed(live))
            except NoElement:
                raise _unconvertible(live, _listed(place, live)) from None
            fields = stripped(place.writable.of(taken(changes)))
            if fields:
                managers[place.manager(BEFORE_FIRST_APPLY, UPDATE)] = Owned(fields, place.version, format_time(now))
        return managers

    def _run(self, request: Apply, managers: Managers) -> _Result:
        try:
            return self._attempt(request, dict(managers))
        except ApplyConflict as conflict:
            if request.manager_id.manager != KUBECTL:
                raise
            allowed = _allowed_by_last_applied(self._tracker, request)
            if allowed is None:
                raise
            left = [(manager_id, _less(owned, allowed)) for manager_id, owned in conflict.conflicts]
            remaining = [(manager_id, owned) for manager_id, owned in left if owned.fields]
            if remaining:
                raise ApplyConflict(remaining) from None
        return self._attempt(replace(request, force=True), dict(managers))

    def _attempt(self, request: Apply, managers: Managers) -> _Result:
        place, node = request.place, request.place.node
        merged = typed.merge(node, request.live, request.config)
        last = managers.get(request.manager_id)
        fields = place.writable.of(typed.field_set(node, request.config))
        managers[request.manager_id] = Owned(fields, place.version, last.time if last else None)
        result = self._prune(request, merged, managers, last)
        changes = self._tracker.comparer.compare(node, request.live, result)
        if not request.force:
            _refuse_conflicts(self._tracker, request, managers, changes, result)
        self._tracker.share(place, managers, changes, request.live, result, keep=request.manager_id)
        mine = stripped(managers[request.manager_id].fields)
        if mine:
            managers[request.manager_id] = _renewed(last, ordered(mine), place.version)
        else:
            del managers[request.manager_id]
        return _Result(None if result == request.live else result, managers)

    def _prune(self, request: Apply, merged: Doc, managers: Managers, last: Owned | None) -> Doc:
        """Remove the fields that the manager applied before and no longer applies, unless another manager owns them.

        The fields of each manager are those of its version. Raises Untyped.
        """
        if last is None or not last.fields:
            return merged
        place = request.place
        try:
            pruned = self._pruned(request, Versioned(place.version, place.node, merged), managers, last)
        except Untyped as error:
            raise Untyped(f"failed to prune fields: {error}") from None
        return typed.with_nulls(place.node, pruned, request.config)

    def _pruned(self, request: Apply, merged: Versioned, managers: Managers, last: Owned) -> Doc:
        applied = self._seen(request, merged, last.version, "failed to convert merged object to last applied version: ")
        if applied is None:
            return merged.doc
        before = with_named_fields(last.fields, applied.node)
        pruned = _without(applied, before)
        owned: dict[str, Fields] = {last.version: {}}  # first, since what it requires may be necessary for conversions
        for each in managers.values():
            owned[each.version] = union(owned.get(each.version, {}), each.fields)
        whole: Versioned = applied
        for version, fields in owned.items():
            at, failed = f"at version {version}: ", "failed add back owned items: failed to convert"
            seen = self._seen(request, whole, version, f"{failed} merged object {at}")
            rest = self._seen(request, pruned, version, f"{failed} pruned object {at}")
            if seen is None or rest is None:
                continue
            kept = union(_all_fields(rest), with_named_fields(fields, rest.node))
            whole, pruned = seen, _without(seen, difference(_all_fields(seen), kept))
        failed = "failed add back dangling items: failed to convert pruned object to last applied version: "
        left = self._seen(request, pruned, last.version, failed)
        if left is not None:
            applied = _without(applied, intersection(difference(_all_fields(applied), _all_fields(left)), before))
        result = self._seen(request, applied, request.place.version, "")
        return merged.doc if result is None else result.doc

    def _seen(self, request: Apply, seen: Versioned, version: str, failed: str) -> Versioned | None:
        try:
            stored = request.live is not request.place.empty
            return self._tracker.in_version(request.place, seen, version, stored=stored)
        except Untyped as error:
            raise Untyped(f"{failed}{error}") from None


def _all_fields(seen: Versioned) -> Fields:
    return with_named_fields(typed.field_set(seen.node, seen.doc), seen.node)


def _without(seen: Versioned, removed: Fields) -> Versioned:
    return replace(seen, doc=typed.remove(seen.node, seen.doc, removed))


def _renewed(last: Owned | None, fields: Fields, version: str) -> Owned:
    """The manager's entry: the last one if it is the same."""
    if last is not None and last.fields == fields and last.version == version:
        return last
    return Owned(fields, version, last.time if last is not None else None)


def _less(owned: Owned, allowed: Fields) -> Owned:
    return Owned(difference(owned.fields, allowed), owned.version, owned.time)


def _refuse_conflicts(tracker: Tracker, request: Apply, managers: Managers, changes: Changes, result: Doc) -> None:
    """Raise ApplyConflict if the change touches fields of other managers, compared in the version of each."""
    place = request.place
    wanted = Changes()
    wanted.added, wanted.modified, wanted.removed = changes.added, changes.modified, changes.removed
    place.writable.narrow(wanted)
    mine = {place.version: taken(wanted)}
    conflicts: Conflicts = []
    for manager_id, owned in managers.items():
        if manager_id == request.manager_id:
            continue
        if owned.version not in mine:
            seen = tracker.changes_in(place, owned.version, request.live, result)
            mine[owned.version] = {} if seen is None else taken(seen)
        contested = intersection(owned.fields, mine[owned.version])
        if contested:
            conflicts.append((manager_id, Owned(contested, owned.version, owned.time)))
    if conflicts:
        raise ApplyConflict(conflicts)


# --- checks and errors -----------------------------------------------------------------------------------


def check_kind(config: Doc, wanted_version: str, wanted_kind: str) -> None:
    """The configuration must be of this kind. Raises ApiError."""
    stated = _stated_gvk(config)
    if stated != _gvk(wanted_version, wanted_kind):
        raise ApiError(400, "BadRequest", f"invalid object type: {stated}")


def check_config(place: WriteTarget, config: Doc) -> None:
    """The configuration must be of the path's kind and match its type. Raises ApiError."""
    check_kind(config, place.version, place.resource.kind)
    meta = config.get("metadata")
    managed = meta.get("managedFields") if isinstance(meta, dict) else None
    if isinstance(managed, list) and all(isinstance(entry, dict) for entry in managed):
        raise ApiError(400, "BadRequest", "metadata.managedFields must be nil")
    _refuse_untyped("patch", config, typed.listed(typed.problems(place.node, config)))


def _unconvertible(live: Doc, problems: str) -> ApiError:
    """An object without managers, whose fields cannot be given one, does not match its type."""
    why = f"failed to convert new object ({described(live)}) to smd typed: {problems}"
    return ApiError(500, "", f"failed to create manager for existing fields: {why}")


def _check_live(place: WriteTarget, live: Doc) -> None:
    """An object that was stored before the schema changed may not match its type. Raises ApiError (500)."""
    _refuse_untyped("live", live, _listed(place, live))


def _listed(place: WriteTarget, live: Doc) -> str:
    return typed.listed(typed.problems(place.node, live, duplicates=True))


def _refuse_untyped(which: str, doc: Doc, problems: str) -> None:
    if problems:
        raise ApiError(500, "", f"failed to create typed {which} object ({described(doc)}): {problems}")


def described(config: Doc) -> str:
    """``namespace/name; apps/v1, Kind=Deployment``."""
    meta = config.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return f"{_text(meta, 'namespace')}/{_text(meta, 'name')}; {_stated_gvk(config)}"


def _stated_gvk(config: Doc) -> str:
    """The apiVersion and kind of a configuration, as far as they are such."""
    api_version = _text(config, "apiVersion")
    return _gvk("", "") if api_version.count("/") > 1 else _gvk(api_version, _text(config, "kind"))


def _text(doc: Doc, key: str) -> str:
    value = doc.get(key)
    return value if isinstance(value, str) else ""


def _gvk(api_version: str, kind: str) -> str:
    return f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"


def conflict_error(conflicts: Conflicts) -> ApiError:
    """409 with one cause for each contested field."""
    ordered = sorted(conflicts, key=_identifier)
    found = [
        (_named(manager_id, owned), "".join(map(text, path)))
        for manager_id, owned in ordered
        for path in paths(owned.fields)
    ]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {name}", "field": path} for name, path in found
    ]
    return ApiError(409, "Conflict", _conflict_message(found), details={"causes": causes})


def _identifier(conflict: tuple[ManagerId, Owned]) -> str:
    """The manager's identifier upstream, by which the managers are sorted: one with a subresource comes first."""
    manager_id, owned = conflict
    known: Doc = {"manager": manager_id.manager, "operation": manager_id.operation}
    if manager_id.operation == UPDATE:
        known["apiVersion"] = owned.version
    if manager_id.subresource:
        known["subresource"] = manager_id.subresource
    return codec.encode(known).decode()


def _named(manager_id: ManagerId, owned: Owned) -> str:
    name = quote(manager_id.manager)
    if manager_id.subresource:
        name += f" with subresource {quote(manager_id.subresource)}"
    return f"{name} using {owned.version}" if manager_id.operation == UPDATE else name


def _conflict_message(found: list[tuple[str, str]]) -> str:
    if len(found) == 1:
        name, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {name}: {path}"
    lines: list[str] = []
    for name in dict.fromkeys(name for name, _ in found):
        lines.append(f"conflicts with {name}:")
        lines += [f"- {path}" for other, path in found if other == name]
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


# --- client-side apply ------------------------------------------------------------------------------------


def _last_applied(doc: Doc) -> str:
    annotations = cast("Doc", doc.get("metadata", {})).get("annotations")
    return str(annotations.get(LAST_APPLIED, "")) if isinstance(annotations, dict) else ""


def _allowed_by_last_applied(tracker: Tracker, request: Apply) -> Fields | None:
    """The fields that a client-side apply of kubectl set and that have not changed since; None without such an
    apply."""
    recorded = _last_applied(request.live)
    if not recorded:
        return None
    try:
        last = codec.decode_doc(recorded)
    except codec.DecodeError:
        return None
    place = request.place
    if last.get("apiVersion") != place.version or typed.problems(place.node, last):
        return None
    changes = tracker.comparer.compare(place.node, last, request.live)
    fields = typed.field_set(place.node, last)
    for part in (changes.modified, changes.added, changes.removed):
        fields = difference(fields, part)
    return fields


def _with_last_applied(doc: Doc, config: Doc) -> Doc:
    """Update kubectl's last-applied annotation, if the object has it. A null annotation is an empty text in it."""
    if not _last_applied(doc):
        return doc
    meta = cast("Doc", doc["metadata"])
    said: Doc = {**cast("Doc", config.get("metadata", {}))}
    notes = said.pop("annotations", None)
    if isinstance(notes, dict):
        said["annotations"] = {k: "" if v is None else v for k, v in notes.items() if k != LAST_APPLIED}
    recorded = codec.encode_sorted({**config, "metadata": said}).decode() + "\n"
    annotations = {**cast("Doc", meta["annotations"]), LAST_APPLIED: recorded}
    return {**doc, "metadata": {**meta, "annotations": annotations}}
