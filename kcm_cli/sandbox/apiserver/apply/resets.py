"""Fields that a path cannot write, and so nobody comes to own through it; which, is said by each kind.

upstream: the GetResetFields methods under pkg/registry and apiextensions-apiserver
pkg/registry/customresource
"""

import msgspec

from kcm_cli.sandbox.apiserver.apply.compare import Changes
from kcm_cli.sandbox.apiserver.apply.fieldset import (
    LEAF,
    SELF,
    Fields,
    of_paths,
    recursive_difference,
)

_ANY_ITEM = "*"


class Writable(msgspec.Struct, frozen=True):
    """What may be owned through a path: all but ``without``, or, where given, ``only`` (``*``: any item)."""

    without: Fields = msgspec.field(default_factory=dict)
    only: Fields | None = None

    def of(self, fields: Fields) -> Fields:
        """The part of a set that may be owned."""
        if self.only is not None:
            return _matching(fields, self.only)
        return recursive_difference(fields, self.without) if self.without else fields

    def narrow(self, changes: Changes) -> None:
        """Leave out of the changes what the path does not write."""
        if self.only is not None or any(
            key in part for key in self.without for part in (changes.added, changes.modified, changes.removed)
        ):
            changes.added = self.of(changes.added)
            changes.modified = self.of(changes.modified)
            changes.removed = self.of(changes.removed)


def _matching(fields: Fields, pattern: Fields) -> Fields:
    """The entries that a pattern names; a leaf of the pattern takes all that is below."""
    out: Fields = {}
    for key, entry in fields.items():
        wanted = pattern.get(key, pattern.get(_ANY_ITEM))
        if wanted is None or key == SELF:
            continue
        below = _matching(entry, wanted) if wanted else entry
        if entry and not below and SELF not in entry:
            continue
        out[key] = {SELF: LEAF, **below} if wanted and SELF in entry and below else below
    return out


ALL = Writable()
STATUS = Writable(of_paths(("status",)))
SPEC = Writable(of_paths(("spec",)))
SPEC_AND_METADATA = Writable(of_paths(("spec",), ("metadata",)))
