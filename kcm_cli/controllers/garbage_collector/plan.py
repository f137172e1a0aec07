"""Decides about an object whose owners are known.

upstream: pkg/controller/garbagecollector/garbagecollector.go#attemptToDeleteItem
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import msgspec

from kcm_cli.api.well_known import FOREGROUND
from kcm_cli.controllers.garbage_collector.graph import ORPHAN, Node
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference
from kcm_cli.planning.actions import Remark


class Owner(Enum):
    """The state of an owner: it exists, is gone, or waits for its dependents in a foreground deletion."""

    SOLID = "solid"
    DANGLING = "dangling"
    WAITING = "waiting"


class Keep(msgspec.Struct, frozen=True):
    """Leave the object as it is."""


class Disown(msgspec.Struct, frozen=True):
    """Remove the references to these uids; another owner exists."""

    uids: tuple[str, ...]


class Remove(msgspec.Struct, frozen=True):
    """Delete the object. ``unblock``: first make its references non-blocking, because there may be a cycle."""

    propagation: str
    unblock: bool = False


Fate = Keep | Disown | Remove


def plan(node: Node, meta: ObjectMeta, owners: Sequence[Owner]) -> Fate:
    """Decide about an object. ``owners``: the state of the owner in each of its references.

    The list is by reference, not by uid: two references may have one uid and differ in other fields.
    """
    if not meta.owner_references:
        return Keep()
    states = zip(meta.owner_references, owners, strict=True)
    absent = tuple(ref.uid for ref, state in states if state is not Owner.SOLID)
    if len(absent) < len(owners):
        return Disown(absent) if absent else Keep()
    if Owner.WAITING in owners and node.dependents:
        cycle = any(dependent.deleting_dependents for dependent in node.dependents.values())
        return Remove("Foreground", unblock=cycle)
    return Remove(propagation_of(meta))


CYCLE = "owner references may form a cycle"


def reason(fate: Fate, owners: Sequence[Owner]) -> str:
    """Why it was decided, for the log of writes."""
    match fate:
        case Keep():
            return ""
        case Disown():
            return "one of its owners is gone"
        case Remove():
            return "owner waits for its dependents" if Owner.WAITING in owners else "no owner is left"


def remarks(node: Node, meta: ObjectMeta, owners: Sequence[Owner], fate: Fate) -> Iterator[Remark]:
    """What upstream logs about a decision, at verbosity 2."""
    item = node.identity
    refs = list(zip(meta.owner_references, owners, strict=True))
    if not refs:
        yield Remark("item doesn't have an owner, continue on next item", {"item": item})
    if Owner.SOLID in owners:
        solid = _named(refs, Owner.SOLID)
        yield Remark("item has at least one existing owner, will not garbage collect", {"item": item, "owner": solid})
    match fate:
        case Disown():
            yield Remark(
                "remove dangling references and waiting references for item",
                {
                    "item": item,
                    "dangling": _named(refs, Owner.DANGLING),
                    "waitingForDependentsDeletion": _named(refs, Owner.WAITING),
                },
            )
        case Remove("Foreground", unblock) if Owner.WAITING in owners and node.dependents:
            if unblock:
                dependents = node.dependents.values()
                circle = next(one.identity for one in dependents if one.deleting_dependents)
                yield Remark(
                    "processing item, some of its owners and its dependent have FinalizerDeletingDependents, to"
                    " prevent potential cycle, its ownerReferences are going to be modified to be non-blocking, then"
                    " the item is going to be deleted with Foreground",
                    {"item": item, "dependent": circle},
                )
            yield Remark(
                "at least one owner of item has FinalizerDeletingDependents, and the item itself has dependents, so it"
                " is going to be deleted in Foreground",
                {"item": item},
            )
        case Remove(propagation):
            yield Remark("Deleting item", {"item": item, "propagationPolicy": propagation})


def _named(refs: Iterable[tuple[OwnerReference, Owner]], state: Owner) -> list[Doc]:
    return [_reference(ref, block=ref.block_owner_deletion) for ref, found in refs if found is state]


def propagation_of(meta: ObjectMeta) -> str:
    """The deletion propagation that the object's finalizers request."""
    if ORPHAN in meta.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in meta.finalizers else "Background"


# -- patches: strategic where the server merges owner references by uid, else the whole list with its version


def disown(uid: str, owners: tuple[str, ...], version: str = "") -> Doc:
    """A strategic merge patch that removes references. Preconditions: uid, and ``version`` where the references were
    read from a cache."""
    references = [{"$patch": "delete", "uid": owner} for owner in owners]
    return {"metadata": _preconditions(uid, version) | {"ownerReferences": references}}


def disown_whole(meta: ObjectMeta, owners: tuple[str, ...]) -> Doc:
    """The merge patch that removes references, for custom resources."""
    return _whole(meta, tuple(ref for ref in meta.owner_references if ref.uid not in owners))


def unblock(uid: str, owners: tuple[OwnerReference, ...], version: str) -> Doc:
    """A strategic merge patch that makes all references non-blocking. Preconditions: uid and ``version``, since it
    would restore a reference that was removed meanwhile."""
    references = [_reference(ref, block=False) for ref in owners if ref.block_owner_deletion]
    return {"metadata": _preconditions(uid, version) | {"ownerReferences": references}}


def unblock_whole(meta: ObjectMeta) -> Doc:
    references = [_reference(ref, block=False) for ref in meta.owner_references]
    return {"metadata": {"resourceVersion": meta.resource_version, "ownerReferences": references}}


def without_finalizer(meta: ObjectMeta, finalizer: str) -> Doc | None:
    """A merge patch that removes a finalizer; None if it is absent."""
    if finalizer not in meta.finalizers:
        return None
    kept = [name for name in meta.finalizers if name != finalizer]
    return {"metadata": {"resourceVersion": meta.resource_version, "finalizers": kept}}


def _preconditions(uid: str, version: str) -> Doc:
    return {"uid": uid, "resourceVersion": version} if version else {"uid": uid}


def _whole(meta: ObjectMeta, kept: tuple[OwnerReference, ...]) -> Doc:
    references = [_reference(ref, block=ref.block_owner_deletion) for ref in kept]
    return {"metadata": {"resourceVersion": meta.resource_version, "ownerReferences": references}}


def _reference(ref: OwnerReference, *, block: bool | None) -> Doc:
    doc: Doc = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
    if ref.controller is not None:
        doc["controller"] = ref.controller
    if block is not None:
        doc["blockOwnerDeletion"] = block
    return doc
