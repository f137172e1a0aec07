"""Conversion between the form of a resource and the one in which its objects are stored.

Requests are converted to the stored form, and back for responses. Metadata is not converted.
"""

from collections.abc import Callable, Iterable, Sequence

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.types import Tree


class Conversion:
    """The conversion of one resource. The defaults convert nothing, and need no preparation."""

    @property
    def lasts(self) -> bool:
        """Whether ``read`` works at any time once ``prepare`` was called, and not until the next await only."""
        return True

    def to_storage(self, doc: Tree) -> Tree:
        """A document in the stored form; a custom object stays as it is."""
        return doc

    def read(self, doc: Tree) -> Tree:
        """A stored document in the resource's form. Does not change it."""
        return doc

    def versioned(self, doc: Tree, *, stored: bool) -> Tree:
        """``read`` for comparisons. ``stored``: the object exists. Raises Unconverted, ApiError 500."""
        return self.read(doc)

    async def prepare(self, docs: Sequence[Tree], *, cached: bool) -> None:
        """Prepare ``read`` of stored documents. Raises ApiError 500, UnknownVersion."""

    def check_versions(self, docs: Iterable[Tree]) -> None:
        """Raises UnknownVersion if a document has a version that its definition no longer has."""

    async def stored(self, doc: Tree) -> Tree:
        """A document in the stored form, as it is stored. Raises ApiError 500."""
        return doc

    async def dry_run_result(self, doc: Tree) -> Tree:
        """``read`` for a document that is not stored. Raises ApiError 500."""
        return self.read(doc)


class StoredAs(Conversion):
    """A version of a built-in kind whose objects are stored as those of another resource."""

    def __init__(self, storage: GVR, to_storage: Callable[[Tree], Tree], read: Callable[[Tree], Tree]) -> None:
        self.storage, self._to_storage, self._read = storage, to_storage, read

    def to_storage(self, doc: Tree) -> Tree:
        return self._to_storage(doc)

    def read(self, doc: Tree) -> Tree:
        return self._read(doc)
