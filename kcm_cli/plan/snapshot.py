"""A cluster as it was read: the objects as the server sent them, and what could not be read.

Nothing in a snapshot is trusted to be well-formed beyond this: each object is a JSON object with a name.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc


class PlanError(Exception):
    """A plan cannot be made; the text is one line for each thing that is wrong."""


class Item(msgspec.Struct, frozen=True):
    """One object: its encoded JSON with apiVersion and kind in it."""

    namespace: str
    name: str
    uid: str
    data: bytes

    @property
    def doc(self) -> Doc:
        """A new document."""
        return codec.decode_doc(self.data)


class Collection(msgspec.Struct, frozen=True):
    """All objects of a resource, in the order of their keys."""

    gvr: GVR
    kind: str
    namespaced: bool
    items: tuple[Item, ...]
    inert: bool = False


class Gap(msgspec.Struct, frozen=True):
    """A kind that is not in the snapshot, or in part. ``resource``: as ``deployments.apps``."""

    resource: str
    reason: str
    partial: bool = False


class Snapshot(msgspec.Struct, frozen=True):
    """A cluster at one moment.

    taken_at: by the server's clock where it told. server_version: ``v1.36.2``. resource_version: of the cut.
    torn: the kinds that were read at another version than the others. salt: with which values of env were replaced
    (see ``files``), empty where they are there. skipped: objects that had no name.
    """

    taken_at: datetime
    server_version: str
    resource_version: str
    collections: Mapping[GVR, Collection]
    torn: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    salt: str = ""
    skipped: tuple[str, ...] = ()
    context: str = ""

    def items(self, gvr: GVR) -> tuple[Item, ...]:
        """The objects of a resource, none where it is not in the snapshot."""
        found = self.collections.get(gvr)
        return found.items if found is not None else ()

    def docs(self, gvr: GVR) -> Iterator[dict[str, Any]]:
        """The same as documents."""
        for item in self.items(gvr):
            yield item.doc

    @property
    def missing(self) -> frozenset[str]:
        """The kinds that are not there at all, as ``deployments.apps``."""
        return frozenset(gap.resource for gap in self.gaps if not gap.partial)

    @property
    def size(self) -> int:
        """How many objects there are."""
        return sum(len(one.items) for one in self.collections.values())
