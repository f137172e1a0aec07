"""Reads and writes metadata.managedFields: which manager owns which fields.

upstream: apimachinery pkg/util/managedfields/internal/{managedfields,capmanagers,managedfieldsupdater}.go
"""

from typing import cast

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply.fieldset import Fields, difference, union
from kcm_cli.sandbox.apiserver.apply.stated import BadFields, stated_fields

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATERS = 10
OLD_UPDATES = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"
_EMPTY: list[Doc] = [{}]


class BadManagedFields(Exception):
    """Entries that cannot be read; the text is upstream's."""


class ManagerId(msgspec.Struct, frozen=True):
    """Identifies a manager's entry. ``version`` is empty for Apply, whose apiVersion may change."""

    manager: str
    operation: str
    version: str = ""
    subresource: str = ""


def build_manager_id(manager: str, operation: str, version: str, subresource: str) -> ManagerId:
    return ManagerId(manager or "unknown", operation, "" if operation == APPLY else version, subresource)


class Owned(msgspec.Struct, frozen=True):
    """The fields of a manager, their apiVersion, and the time of its last change (RFC 3339). ``entry``: the entry that
    it was read from."""

    fields: Fields
    version: str
    time: str | None = None
    entry: Doc | None = None


Managers = dict[ManagerId, Owned]


def is_reset(entries: object) -> bool:
    """Whether managedFields of a request remove all managers: an empty list, or one empty entry."""
    return entries == [] or entries == _EMPTY


def read(entries: object) -> Managers:
    """The managers of an object's managedFields. Raises BadManagedFields."""
    found: Managers = {}
    for index, item in enumerate(cast("list[Doc]", entries or [])):
        operation, version = cast("str", item.get("operation", "")), cast("str", item.get("apiVersion", ""))
        if operation not in (APPLY, UPDATE):
            raise BadManagedFields("operation must be `Apply` or `Update`")
        if not version:
            raise BadManagedFields("apiVersion must not be empty")
        if item.get("fieldsType") != "FieldsV1":
            raise BadManagedFields(_fields_type_problem(item, index))
        subresource = cast("str", item.get("subresource", ""))
        manager_id = ManagerId(
            cast("str", item.get("manager", "")), operation, "" if operation == APPLY else version, subresource
        )
        fields = cast("Fields", item.get("fieldsV1") or {})
        found[manager_id] = Owned(fields, version, cast("str | None", item.get("time")), item)
    return found


def read_stated(entries: object) -> Managers:
    """The managers in a request, also those that own no field. Raises BadManagedFields."""
    found: Managers = {}
    for manager_id, owned in read(entries).items():
        stated = (owned.entry or {}).get("fieldsV1")
        try:
            fields = stated_fields({} if stated is None else stated)
        except BadFields as error:
            raise BadManagedFields(f"error decoding fieldsV1: {error}") from None
        found[manager_id] = owned if fields == owned.fields else replace(owned, fields=fields, entry=None)
    return found


def _fields_type_problem(item: Doc, index: int) -> str:
    kind = item.get("fieldsType")
    if not kind:
        return f"missing fieldsType in managed fields entry {index}"
    return f'invalid fieldsType "{kind}" in managed fields entry {index}'


def write(managers: Managers) -> list[Doc]:
    """The entries, sorted by operation (Apply first), time, name, version and subresource."""
    if len(managers) == 1:
        manager_id, owned = next(iter(managers.items()))
        return [_entry(manager_id, owned)]
    ranked = sorted(managers.items(), key=_rank)
    return [_entry(manager_id, owned) for manager_id, owned in ranked]


def _rank(item: tuple[ManagerId, Owned]) -> tuple[str, str, str, str, str]:
    manager_id, owned = item
    return manager_id.operation, owned.time or "", manager_id.manager, owned.version, manager_id.subresource


def _entry(manager_id: ManagerId, owned: Owned) -> Doc:
    if owned.entry is not None:
        return owned.entry
    entry: Doc = {"manager": manager_id.manager, "operation": manager_id.operation, "apiVersion": owned.version}
    if owned.time is not None:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owned.fields
    if manager_id.subresource:
        entry["subresource"] = manager_id.subresource
    return entry


def release(owned: Owned, *fields_removed: Fields) -> Owned | None:
    """Remove fields from a manager's. None if none is left; the same object if nothing changes."""
    fields = owned.fields
    for part in fields_removed:
        if part:
            fields = difference(fields, part)
    if fields is owned.fields:
        return owned if fields else None
    return Owned(fields, owned.version, owned.time) if fields else None


def cap(managers: Managers) -> None:
    """Merge the oldest Update entries of each version, until at most ``MAX_UPDATERS`` are left."""
    updaters = [manager_id for manager_id in managers if manager_id.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return
    updaters.sort(
        key=lambda manager_id: (
            managers[manager_id].time or "",
            manager_id.manager,
            manager_id.version,
            manager_id.subresource,
        )
    )
    first: dict[str, ManagerId] = {}
    for manager_id in updaters:
        if surplus <= 0:
            return
        owned = managers[manager_id]
        bucket = ManagerId(OLD_UPDATES, UPDATE, owned.version)
        if owned.version not in first:
            first[owned.version] = manager_id
            continue
        if bucket not in managers:
            managers[bucket] = replace(managers.pop(first[owned.version]), entry=None)
        merged = union(owned.fields, managers[bucket].fields)
        del managers[manager_id]
        managers[bucket] = Owned(merged, owned.version, owned.time)
        surplus -= 1
