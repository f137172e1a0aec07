"""A new status as changes of a document: known fields are set or removed, all others stay."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View
from kcm_cli.planning.actions import ABSENT, Apply, Path, Value


def status_changes(status: View, *, always: tuple[str, ...] = ()) -> Mapping[Path, Value]:
    """Changes that make ``status`` of an object equal to this view in all fields that the view names.

    Fields at their default are removed, as Go's omitempty leaves them out, except those named in ``always``.
    """
    values = msgspec.to_builtins(status)
    changes: dict[Path, Value] = {}
    for field, name in zip(status.__struct_fields__, status.__struct_encode_fields__, strict=True):
        if name in values:
            changes[("status", name)] = values[name]
        elif name in always:
            changes[("status", name)] = msgspec.to_builtins(getattr(status, field))
        else:
            changes[("status", name)] = ABSENT
    return changes


def applied_status(resource: Resource[Any], obj: Object, status: Doc, manager: str) -> Apply:
    """Server-side apply of these fields of a status; the object's uid is the precondition."""
    metadata: Doc = {"name": obj.name, "uid": obj.uid}
    if obj.namespace:
        metadata["namespace"] = obj.namespace
    body: Doc = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "status": status}
    return Apply(resource, obj.namespace, obj.name, body, manager, "status")
