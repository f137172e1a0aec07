"""Protection finalizers, which keep an object that is being deleted while something uses it.

Admission adds them to new objects; the controllers add them to objects that lack them.
"""

from typing import Any

from kcm_cli.api.resource import Resource
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Path, Update, Value

_PATH = ("metadata", "finalizers")


def is_held(obj: Object, finalizer: str) -> bool:
    """Whether the object is being deleted and has this finalizer."""
    return obj.deleting and finalizer in obj.metadata.finalizers


def lacks(obj: Object, finalizer: str) -> bool:
    """Whether the object is not being deleted and lacks this finalizer."""
    return not obj.deleting and finalizer not in obj.metadata.finalizers


def needs_work(obj: Object, finalizer: str) -> bool:
    """Whether the finalizer must be added, or may have to be removed."""
    return is_held(obj, finalizer) or lacks(obj, finalizer)


def plan(resource: Resource[Any], obj: Object, finalizer: str, *, used: bool) -> Update | None:
    """Remove the finalizer of an object that is being deleted and not used; add it to one that lacks it."""
    if is_held(obj, finalizer) and not used:
        return release(resource, obj, finalizer)
    return protection(resource, obj, finalizer) if lacks(obj, finalizer) else None


def protection(resource: Resource[Any], obj: Object, finalizer: str) -> Update:
    """Add the finalizer."""
    changes: dict[Path, Value] = {_PATH: [*obj.metadata.finalizers, finalizer]}
    return Update(resource, obj, changes, reason="protection finalizer is missing")


def release(resource: Resource[Any], obj: Object, finalizer: str) -> Update:
    """Remove the finalizer."""
    changes: dict[Path, Value] = {_PATH: [name for name in obj.metadata.finalizers if name != finalizer]}
    return Update(resource, obj, changes, reason="deleted and not used any more")
