"""A new status as changes of a document: set what we know, remove what became empty, leave the rest alone."""

from collections.abc import Mapping

import msgspec

from kcm_cli.machinery.meta import View
from kcm_cli.planning.actions import ABSENT, Path, Value


def status_changes(status: View, *, always: tuple[str, ...] = ()) -> Mapping[Path, Value]:
    """Changes that make ``status`` of an object equal to this view in all fields that the view names.

    Fields at their default are removed, as Go's omitempty leaves them out, except those named in ``always``.
    """
    values = msgspec.to_builtins(status)
    changes: dict[Path, Value] = {}
    for field in msgspec.structs.fields(status):
        name = field.encode_name
        if name in values:
            changes[("status", name)] = values[name]
        elif name in always:
            changes[("status", name)] = msgspec.to_builtins(getattr(status, field.name))
        else:
            changes[("status", name)] = ABSENT
    return changes
