"""Fields that a path cannot write, and so nobody comes to own through it; which, is said by each kind.

upstream: the GetResetFields methods under pkg/registry and apiextensions-apiserver
pkg/registry/customresource
"""

import msgspec

from kcm_cli.sandbox.apiserver.apply.compare import Changes
from kcm_cli.sandbox.apiserver.apply.fieldset import (
    Fields,
    of_paths,
    recursive_difference,
)


class Writable(msgspec.Struct, frozen=True):
    """What may be owned through a path: all but ``without``."""

    without: Fields = msgspec.field(default_factory=dict)

    def of(self, fields: Fields) -> Fields:
        """The part of a set that may be owned."""
        return recursive_difference(fields, self.without) if self.without else fields

    def narrow(self, changes: Changes) -> None:
        """Leave out of the changes what the path does not write."""
        if any(key in part for key in self.without for part in (changes.added, changes.modified, changes.removed)):
            changes.added = self.of(changes.added)
            changes.modified = self.of(changes.modified)
            changes.removed = self.of(changes.removed)


ALL = Writable()
STATUS = Writable(of_paths(("status",)))
SPEC = Writable(of_paths(("spec",)))
SPEC_AND_METADATA = Writable(of_paths(("spec",), ("metadata",)))
