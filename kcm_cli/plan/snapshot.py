"""A snapshot: a cluster's objects as the API server sent them, and the kinds that could not be read.

Each object is a JSON object with a name; nothing else is guaranteed.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc


class PlanError(Exception):
    """The plan cannot be made. The text has one line for each error."""


class Item(msgspec.Struct, frozen=True):
    """One object, as encoded JSON with its apiVersion and kind."""

    namespace: str
    name: str
    uid: str
    data: bytes

    @property
    def doc(self) -> Doc:
        """The object as a new document."""
        return codec.decode_doc(self.data)


class Collection(msgspec.Struct, frozen=True):
    """All objects of a resource, sorted by key. read: otherwise the items stand for the objects that others refer to
    (see ``questions``), and which there are is not known."""

    gvr: GVR
    kind: str
    namespaced: bool
    items: tuple[Item, ...]
    read: bool = True


class Gap(msgspec.Struct, frozen=True):
    """A kind that is missing in the snapshot, or in part. ``resource``: such as ``deployments.apps``. ``namespace``: if
    it is missing in part, the one whose objects were read."""

    resource: str
    reason: str
    partial: bool = False
    namespace: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """A cluster at one point in time.

    taken_at: by the server's clock if known. server_version: such as ``v1.36.2``. resource_version: of the first list.
    torn: the kinds that were read at another version. redacted: values of environment variables are numbers (see
    ``redaction``). skipped: objects without a name. namespace: of names that have none, as the kubeconfig's context
    says; a file does not have it.
    """

    taken_at: datetime
    server_version: str
    resource_version: str
    collections: Mapping[GVR, Collection]
    torn: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    redacted: bool = False
    skipped: tuple[str, ...] = ()
    context: str = ""
    namespace: str = ""

    def items(self, gvr: GVR) -> tuple[Item, ...]:
        """The objects of a resource; empty if it is not in the snapshot."""
        found = self.collections.get(gvr)
        return found.items if found is not None else ()

    def docs(self, gvr: GVR) -> Iterator[dict[str, Any]]:
        """The objects of a resource, as documents."""
        for item in self.items(gvr):
            yield item.doc

    @property
    def missing(self) -> frozenset[str]:
        """The kinds that are missing altogether, such as ``deployments.apps``."""
        return frozenset(gap.resource for gap in self.gaps if not gap.partial)

    @property
    def size(self) -> int:
        """The number of objects."""
        return sum(len(one.items) for one in self.collections.values())


_FIRST_YEAR, _LAST_YEAR = 2014, 2200


def is_time_of_cluster(time: datetime) -> bool:
    """Whether a cluster can be as old or as young: a twin counts hours and years from this time."""
    return _FIRST_YEAR <= time.year <= _LAST_YEAR


_NAMESPACES = GVR("", "v1", "namespaces")


def cluster_of(snapshot: Snapshot) -> str:
    """The uid of the namespace kube-system, which no other cluster has; "" if it was not read."""
    return next((item.uid for item in snapshot.items(_NAMESPACES) if item.name == "kube-system"), "")
