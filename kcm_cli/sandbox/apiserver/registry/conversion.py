"""Conversion between the form of a resource and the one in which its objects are stored.

Requests are converted to the stored form, and back for responses. Metadata is not converted.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.types import Tree


class Conversion(Protocol):
    """Of one resource. Built-in objects are stored as ``to_storage`` makes them, custom ones as ``stored`` does."""

    def to_storage(self, doc: Tree) -> Tree:
        """A document in the stored form; a custom object stays as it is."""

    def read(self, doc: Tree) -> Tree:
        """A stored document in the resource's form. Does not change it."""

    def versioned(self, doc: Tree, *, stored: bool) -> Tree:
        """``read`` for comparisons. ``stored``: the object exists. Raises Unconverted, ApiError 500."""

    async def prepare(self, docs: Sequence[Tree], *, cached: bool) -> None:
        """Prepare ``read`` of stored documents. Raises ApiError 500, UnknownVersion."""

    def check_versions(self, docs: Iterable[Tree]) -> None:
        """Raises UnknownVersion if a document has a version that its definition no longer has."""

    async def stored(self, doc: Tree) -> Tree:
        """A document as it is stored. Raises ApiError 500."""

    async def dry_run_result(self, doc: Tree) -> Tree:
        """``read`` for a document that is not stored. Raises ApiError 500."""


class StoredAs(msgspec.Struct, frozen=True):
    """The conversion of a version of a built-in kind to another resource, by two functions."""

    storage: GVR
    to_storage: Callable[[Tree], Tree]
    read: Callable[[Tree], Tree]

    def versioned(self, doc: Tree, *, stored: bool) -> Tree:
        return self.read(doc)

    async def prepare(self, docs: Sequence[Tree], *, cached: bool) -> None:
        """Nothing: the functions need no preparation."""

    def check_versions(self, docs: Iterable[Tree]) -> None:
        """Nothing: each stored version is known."""

    async def stored(self, doc: Tree) -> Tree:
        return doc

    async def dry_run_result(self, doc: Tree) -> Tree:
        return self.read(doc)
