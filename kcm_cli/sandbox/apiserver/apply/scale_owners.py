"""Converts the managedFields of an object to those of its Scale, and back.

upstream: apimachinery pkg/util/managedfields/scalehandler.go (v1.36)
"""

from collections.abc import Callable
from typing import cast

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply.fieldset import Fields, difference, is_member, of_paths
from kcm_cli.sandbox.apiserver.apply.managers import BadManagedFields, Managers, Owned, read, write

_SCALE_VERSION = "autoscaling/v1"
_REPLICAS = of_paths(("spec", "replicas"))

PathIn = Callable[[str], tuple[str, ...] | None]
"""The path of the replicas in an apiVersion of the parent; None if that is unknown."""


def of_scale(parent: object, path_in: PathIn) -> list[Doc]:
    """The managedFields of a Scale, from those of its parent."""
    found: Managers = {}
    for manager_id, owned in _read(parent).items():
        path = path_in(owned.version)
        if path is not None and _has(owned.fields, path):
            found[manager_id] = Owned(_REPLICAS, _SCALE_VERSION, owned.time)
    return write(found) if found else []


def of_parent(parent: object, scale: object, version: str, path_in: PathIn) -> list[Doc]:
    """The managedFields of a parent after those of its Scale have changed. ``version``: the parent's apiVersion."""
    before, after = _read(parent), _read(scale)
    found: Managers = {}
    for manager_id, owned in before.items():
        path = path_in(owned.version)
        if path is None:
            continue
        if not _has(owned.fields, path) or manager_id in after:
            found[manager_id] = owned
            after.pop(manager_id, None)
        elif rest := difference(owned.fields, of_paths(path)):
            found[manager_id] = Owned(rest, owned.version, owned.time)
    place = path_in(version)
    assert place is not None
    for manager_id, owned in after.items():
        if _has(owned.fields, ("spec", "replicas")):
            known = before.get(manager_id)
            found[manager_id] = Owned(of_paths(place), version, known.time if known is not None else None)
    return write(found) if found else []


def _read(entries: object) -> Managers:
    try:
        return read(entries)
    except BadManagedFields:
        return {}


def _has(fields: Fields, path: tuple[str, ...]) -> bool:
    at: Fields | None = fields
    for name in path:
        at = cast("Fields", at).get(f"f:{name}")
        if at is None:
            return False
    return is_member(cast("Fields", at))
