"""The fields that a resource or subresource cannot write, so that its writers do not own them. Each kind declares them.

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
    """The fields that writers of a path can own: all but ``without``."""

    without: Fields = msgspec.field(default_factory=dict)

    def of(self, fields: Fields) -> Fields:
        """The part of a set that can be owned."""
        return recursive_difference(fields, self.without) if self.without else fields

    def narrow(self, changes: Changes) -> None:
        """Remove fields that the path does not write from the changes."""
        if any(key in part for key in self.without for part in (changes.added, changes.modified, changes.removed)):
            changes.added = self.of(changes.added)
            changes.modified = self.of(changes.modified)
            changes.removed = self.of(changes.removed)


ALL = Writable()
STATUS = Writable(of_paths(("status",)))
SPEC = Writable(of_paths(("spec",)))
SPEC_AND_METADATA = Writable(of_paths(("spec",), ("metadata",)))
