"""The graph of owners and dependents that the garbage collector decides on.

A node is an object, identified by its uid. An owner that is only known from a reference is *virtual*, until it is
observed or the API server does not have it. Each change of the graph returns the nodes to look at as ``Effects``. Pure:
no queue, no client.

upstream: pkg/controller/garbagecollector/graph_builder.go#processGraphChanges
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from kcm_cli.api.well_known import FOREGROUND
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference
from kcm_cli.machinery.recent import Recent

FEW = 100
"""Up to this number, blocking dependents are queued each time."""
ORPHAN = "orphan"


class Identity(msgspec.Struct, frozen=True, order=True, gc=False):
    """An object's coordinates. The order is that in which alternatives are tried."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As upstream's objectReference prints it."""
        where = f"namespace: {self.namespace}, name: {self.name}, uid: {self.uid}"
        return f"[{self.api_version}/{self.kind}, {where}]"

    @property
    def group_kind(self) -> tuple[str, str]:
        """Group and kind, which are the same in all versions."""
        return self.api_version.rpartition("/")[0], self.kind

    def names(self, ref: OwnerReference) -> bool:
        """Whether a reference names this object, regardless of the namespace."""
        return (self.kind, self.api_version, self.name, self.uid) == (ref.kind, ref.api_version, ref.name, ref.uid)


def identity_of(ref: OwnerReference, namespace: str) -> Identity:
    """The object that a reference names. namespace: empty if that is cluster-scoped."""
    return Identity(ref.kind, ref.api_version, namespace, ref.name, ref.uid)


class Node(msgspec.Struct, eq=False, gc=False):
    """An object in the graph.

    held: its dependents by uid; None for most nodes, which have none. blocking: uids of the dependents that block this
    node's foreground deletion; None if there never was one. asked: the number of blocking dependents when they were
    last queued. guesses: the number of a virtual node's coordinates in a row that the API server did not have. Nodes
    are not tracked by Python's garbage collector: a node that leaves the graph is removed from its owners, so that no
    cycle remains.
    """

    identity: Identity
    owners: tuple[OwnerReference, ...] = ()
    held: dict[str, "Node"] | None = None
    virtual: bool = False
    deleting_dependents: bool = False
    being_deleted: bool = False
    blocking: set[str] | None = None
    asked: int = 0
    guesses: int = 0

    @property
    def dependents(self) -> Mapping[str, "Node"]:
        """The dependents by uid."""
        return _NO_DEPENDENTS if self.held is None else self.held

    def gain(self, dependent: "Node", *, blocks: bool) -> None:
        """Add or update a dependent. ``blocks``: whether it blocks the deletion of this node."""
        theirs = dependent.identity.uid
        if self.held is None:
            self.held = {}
        self.held[theirs] = dependent
        if blocks:
            if self.blocking is None:
                self.blocking = set()
            if theirs not in self.blocking:
                self.blocking.add(theirs)
                self.asked = 0  # this one is not queued yet
        elif self.blocking is not None:
            self.blocking.discard(theirs)

    def lose(self, uid: str) -> None:
        """Remove a dependent."""
        if self.held is not None:
            self.held.pop(uid, None)
        if self.blocking is not None:
            self.blocking.discard(uid)

    def to_ask(self) -> list[str]:
        """The uids of the blocking dependents, if they are to be queued: after others were added, and each time their
        number has halved.

        With this, deleting an owner takes time proportional to its dependents, though each deleted dependent queues the
        owner.
        """
        left = len(self.blocking or ())
        if self.asked and left > max(FEW, self.asked // 2):
            return []
        self.asked = left
        return list(self.blocking or ())


_NO_DEPENDENTS: Mapping[str, Node] = MappingProxyType({})


class Effects(msgspec.Struct):
    """The nodes to look at after a change. Uids: ``delete`` and ``orphan``. Nodes: virtual ones to try later, and those
    with a reference to an owner in another namespace."""

    delete: list[str] = msgspec.field(default_factory=list)
    delete_later: list[Node] = msgspec.field(default_factory=list)
    orphan: list[str] = msgspec.field(default_factory=list)
    wrong_namespace: list[tuple[Node, OwnerReference]] = msgspec.field(default_factory=list)


class Graph:
    """All nodes by uid. upstream: uidToNode."""

    def __init__(self, absent: Recent) -> None:
        self._nodes: dict[str, Node] = {}
        self._absent = absent
        self._freed: dict[str, str] = {}
        """The finalizers that were removed from nodes, by uid."""

    def nodes(self) -> list[Node]:
        return list(self._nodes.values())

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def freed(self, node: Node, finalizer: str) -> None:
        """The finalizer was removed from an object. If it is seen again, the object was deleted once more with it."""
        if self._nodes.get(node.identity.uid) is node:
            self._freed[node.identity.uid] = finalizer

    # -- an object was added or changed

    def observe(
        self, identity: Identity, meta: ObjectMeta, old: ObjectMeta | None, parts: "Parts | None" = None
    ) -> Effects | None:
        """Add or update an object. None if nothing follows. ``old``: its metadata before, if known."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return self._insert(identity, meta, old)
        if not node.virtual and node.identity.api_version != identity.api_version:
            node.identity = identity  # the version in which it was seen before may not be served any more
        if not node.virtual and node.owners == meta.owner_references and meta.deletion_timestamp is None:
            return None
        effects = Effects()
        if node.virtual:
            self._observed(node, identity, parts, effects)
        if node.owners != meta.owner_references:
            self._reown(node, meta.owner_references, effects)
        if meta.deletion_timestamp is not None:
            node.being_deleted = True
        self._transitions(node, meta, old, effects)
        return effects

    def _insert(self, identity: Identity, meta: ObjectMeta, old: ObjectMeta | None) -> Effects:
        deleting = meta.deletion_timestamp is not None
        node = Node(
            identity,
            meta.owner_references,
            deleting_dependents=deleting and FOREGROUND in meta.finalizers,
            being_deleted=deleting,
        )
        effects = Effects()
        self._nodes[identity.uid] = node
        self._add_to_owners(node, node.owners, effects)
        self._transitions(node, meta, old, effects)
        return effects

    def _observed(self, node: Node, identity: Identity, parts: "Parts | None", effects: Effects) -> None:
        """Mark a virtual node as existing. Dependents that name other coordinates are queued."""
        if identity != node.identity:
            _, wrong = parts or partition(node.dependents.values(), identity)
            for dependent in wrong:
                if identity.namespace and dependent.identity.namespace != identity.namespace:
                    self._report(dependent, identity.uid, effects)
                effects.delete.append(dependent.identity.uid)
            node.identity = identity
        node.virtual = False

    def _reown(self, node: Node, owners: tuple[OwnerReference, ...], effects: Effects) -> None:
        before = {ref.uid: ref for ref in node.owners}
        after = {ref.uid: ref for ref in owners}
        for uid, ref in before.items():
            now = after.get(uid)
            if ref.block_owner_deletion and (now is None or not now.block_owner_deletion) and uid in self._nodes:
                effects.delete.append(uid)
        added = tuple(ref for uid, ref in after.items() if uid not in before)
        node.owners = owners
        blocked = _blocked(owners)
        for uid in before.keys() & after.keys():
            owner = self._nodes.get(uid)
            if owner is not None and node.identity.uid in owner.dependents:
                owner.gain(node, blocks=uid in blocked)
        self._add_to_owners(node, added, effects)
        for uid in sorted(before.keys() - after.keys()):
            owner = self._nodes.get(uid)
            if owner is not None:
                owner.lose(node.identity.uid)

    def _add_to_owners(self, node: Node, owners: Iterable[OwnerReference], effects: Effects) -> None:
        doubtful, blocked = False, _blocked(node.owners)
        for ref in owners:
            owner = self._nodes.get(ref.uid)
            if owner is None:
                owner = Node(identity_of(ref, node.identity.namespace), virtual=True)
                self._nodes[ref.uid] = owner
                effects.delete.append(ref.uid)
            elif not doubtful:
                doubtful = self._doubtful(node, ref, owner, effects)
            owner.gain(node, blocks=ref.uid in blocked)
        if doubtful:
            effects.delete.append(node.identity.uid)

    def _doubtful(self, node: Node, ref: OwnerReference, owner: Node, effects: Effects) -> bool:
        """Whether a reference may name another object than the node with its uid."""
        theirs, ours = owner.identity.namespace, node.identity.namespace
        if theirs and theirs != ours:
            if not owner.virtual:
                self._report(node, ref.uid, effects)
            return True
        if not owner.identity.names(ref):
            return True
        return not theirs and theirs != ours and owner.virtual

    def _report(self, node: Node, owner_uid: str, effects: Effects) -> None:
        for ref in node.owners:
            if ref.uid == owner_uid:
                effects.wrong_namespace.append((node, ref))
                return

    def _transitions(self, node: Node, meta: ObjectMeta, old: ObjectMeta | None, effects: Effects) -> None:
        if self._starts(ORPHAN, node, meta, old):
            effects.orphan.append(node.identity.uid)
        elif self._starts(FOREGROUND, node, meta, old):
            node.deleting_dependents, node.asked = True, 0
            effects.delete.extend(node.dependents)
            effects.delete.append(node.identity.uid)

    def _starts(self, finalizer: str, node: Node, meta: ObjectMeta, old: ObjectMeta | None) -> bool:
        """Whether a deletion that waits for the finalizer starts, also again: the versions in between may be unseen."""
        uid = node.identity.uid
        started = _starts_with(finalizer, meta, old if self._freed.get(uid) != finalizer else None)
        if started:
            self._freed.pop(uid, None)
        return started

    # -- an object is gone

    def remove(self, identity: Identity, parts: "Parts | None" = None) -> Effects | None:
        """Remove a deleted object. Its dependents, and owners that wait for it, are queued."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return None
        effects = Effects()
        if node.virtual:
            self._observed(node, identity, parts, effects)
        return self._remove(node, identity, effects)

    def absent(self, identity: Identity, parts: "Parts | None" = None) -> Effects | None:
        """The API server does not have this object, although no deletion was observed."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return None
        if not node.virtual:
            if node.identity == identity:
                return self._remove(node, identity, Effects())
            parts = parts or partition(node.dependents.values(), identity)
            return self._orphans_of(parts, identity, Effects())
        parts = parts or partition(node.dependents.values(), identity)
        _, others = parts
        if not others:
            return self._remove(node, identity, Effects())
        effects = self._orphans_of(parts, identity, Effects())
        if node.identity == identity:
            alternative = _alternative(others, identity)
            if alternative is not None:
                node.identity = alternative
                node.guesses += 1
                effects.delete_later.append(node)
        return effects

    def _orphans_of(self, parts: "Parts", identity: Identity, effects: Effects) -> Effects:
        """Queue the dependents that name the absent coordinates."""
        matching, _ = parts
        if matching:
            self._absent.add(identity)
            effects.delete.extend(dependent.identity.uid for dependent in matching)
        return effects

    def _remove(self, node: Node, identity: Identity, effects: Effects) -> Effects:
        self._nodes.pop(node.identity.uid, None)
        self._freed.pop(node.identity.uid, None)
        node.lose(node.identity.uid)  # it may own itself
        for ref in node.owners:
            owner = self._nodes.get(ref.uid)
            if owner is not None:
                owner.lose(node.identity.uid)
                if owner.deleting_dependents:
                    effects.delete.append(ref.uid)
        if node.dependents:
            self._absent.add(identity)
            effects.delete.extend(node.dependents)
        return effects


Parts = tuple[list[Node], list[Node]]


def partition(dependents: Iterable[Node], owner: Identity) -> Parts:
    """(dependents that name this owner, dependents that name its uid with other coordinates).

    For an owner with many dependents the caller may compute this step by step, and pass it to the graph as ``parts``.
    """
    matching: list[Node] = []
    others: list[Node] = []
    for dependent in dependents:
        if owner.namespace and dependent.identity.namespace != owner.namespace:
            others.append(dependent)
            continue
        refs = [ref for ref in dependent.owners if ref.uid == owner.uid]
        if any(owner.names(ref) for ref in refs):
            matching.append(dependent)
        if any(not owner.names(ref) for ref in refs):
            others.append(dependent)
    return matching, others


def _blocked(owners: Iterable[OwnerReference]) -> set[str]:
    """The uids of the owners whose deletion is blocked."""
    return {ref.uid for ref in owners if ref.block_owner_deletion}


def _starts_with(finalizer: str, meta: ObjectMeta, old: ObjectMeta | None) -> bool:
    """Whether this update starts a deletion that waits for the finalizer."""
    if meta.deletion_timestamp is None or finalizer not in meta.finalizers:
        return False
    return old is None or old.deletion_timestamp is None or finalizer not in old.finalizers


def _alternative(dependents: Iterable[Node], absent: Identity) -> Identity | None:
    """The next coordinates, after the absent ones, by which a dependent names the same uid; else the first ones."""
    found: set[Identity] = set()
    for dependent in dependents:
        for ref in dependent.owners:
            if ref.uid != absent.uid:
                continue
            namespace = dependent.identity.namespace
            if absent.names(ref) and absent.namespace in ("", namespace):
                continue
            same_kind = (ref.api_version, ref.kind) == (absent.api_version, absent.kind)
            found.add(identity_of(ref, "" if not absent.namespace and same_kind else namespace))
    found.discard(absent)
    later = [identity for identity in found if identity > absent]
    return min(later or found, default=None)
