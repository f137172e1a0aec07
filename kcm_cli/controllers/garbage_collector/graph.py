"""Who is owned by whom: the graph that the garbage collector decides on.

A node is an object, known by its uid. An owner that is only named in a reference is *virtual* until its own event
comes, or until the server says that it does not exist. The graph changes with each event; what then has to be
looked at is returned as ``Effects``. Pure: no queue, no client.

upstream: pkg/controller/garbagecollector/graph_builder.go#processGraphChanges
"""

from collections.abc import Iterable

import msgspec

from kcm_cli.machinery.meta import ObjectMeta, OwnerReference
from kcm_cli.machinery.recent import Recent

FEW = 100
"""So many blocking dependents cost nothing to look at."""
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Identity(msgspec.Struct, frozen=True, order=True, gc=False):
    """An object's coordinates; ordered as alternatives are tried."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def names(self, ref: OwnerReference) -> bool:
        """Whether a reference means this object, its namespace aside."""
        return (self.kind, self.api_version, self.name, self.uid) == (ref.kind, ref.api_version, ref.name, ref.uid)


def identity_of(ref: OwnerReference, namespace: str) -> Identity:
    return Identity(ref.kind, ref.api_version, namespace, ref.name, ref.uid)


class Node(msgspec.Struct, eq=False, gc=False):
    """An object in the graph. ``dependents`` by uid. Not looked at by Python's collector: one that leaves the graph is
    struck out by its owners, so that there is no cycle.

    ``blocking``: uids of the dependents for which this node's deletion in the foreground waits; None while there was
    none. ``asked``: how many of them there were when they were last queued. ``guesses``: how many coordinates of a
    virtual node the server has denied in a row.
    """

    identity: Identity
    owners: tuple[OwnerReference, ...] = ()
    dependents: dict[str, "Node"] = msgspec.field(default_factory=dict)
    virtual: bool = False
    deleting_dependents: bool = False
    being_deleted: bool = False
    blocking: set[str] | None = None
    asked: int = 0
    guesses: int = 0

    def gain(self, dependent: "Node") -> None:
        """Enter a dependent as its references are now."""
        uid, theirs = self.identity.uid, dependent.identity.uid
        self.dependents[theirs] = dependent
        if any(ref.uid == uid and ref.block_owner_deletion for ref in dependent.owners):
            if self.blocking is None:
                self.blocking = set()
            if theirs not in self.blocking:
                self.blocking.add(theirs)
                self.asked = 0  # this one is not queued yet
        elif self.blocking is not None:
            self.blocking.discard(theirs)

    def lose(self, uid: str) -> None:
        """Strike a dependent out."""
        self.dependents.pop(uid, None)
        if self.blocking is not None:
            self.blocking.discard(uid)

    def to_ask(self) -> list[str]:
        """The blocking dependents to queue (uids), if it is time for that again: each time half of them are gone, and
        when others have begun to block.

        So the deletion of an owner takes time in proportion to its dependents, though each that goes queues the owner.
        """
        left = len(self.blocking or ())
        if self.asked and left > max(FEW, self.asked // 2):
            return []
        self.asked = left
        return list(self.blocking or ())


class Effects(msgspec.Struct):
    """What to look at now: uids to try to delete, to orphan from, and virtual nodes to try later; references to a wrong
    namespace."""

    delete: list[str] = msgspec.field(default_factory=list)
    delete_later: list[Node] = msgspec.field(default_factory=list)
    orphan: list[str] = msgspec.field(default_factory=list)
    wrong_namespace: list[tuple[Node, OwnerReference]] = msgspec.field(default_factory=list)


class Graph:
    """All nodes by uid (upstream's uidToNode)."""

    def __init__(self, absent: Recent) -> None:
        self._nodes: dict[str, Node] = {}
        self._absent = absent

    def __len__(self) -> int:
        return len(self._nodes)

    def nodes(self) -> list[Node]:
        return list(self._nodes.values())

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    # -- an object was added or changed

    def observe(
        self, identity: Identity, meta: ObjectMeta, old: ObjectMeta | None, parts: "Parts | None" = None
    ) -> Effects | None:
        """Take in an object as it is now; None if nothing follows. ``old``: as it was before, if it was known."""
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
        """A virtual node turns out to exist; dependents that meant something else are looked at again."""
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
        for uid in before.keys() & after.keys():
            owner = self._nodes.get(uid)
            if owner is not None and node.identity.uid in owner.dependents:
                owner.gain(node)
        self._add_to_owners(node, added, effects)
        for uid in sorted(before.keys() - after.keys()):
            owner = self._nodes.get(uid)
            if owner is not None:
                owner.lose(node.identity.uid)

    def _add_to_owners(self, node: Node, owners: Iterable[OwnerReference], effects: Effects) -> None:
        doubtful = False
        for ref in owners:
            owner = self._nodes.get(ref.uid)
            if owner is None:
                owner = Node(identity_of(ref, node.identity.namespace), virtual=True)
                self._nodes[ref.uid] = owner
                effects.delete.append(ref.uid)
            elif not doubtful:
                doubtful = self._doubtful(node, ref, owner, effects)
            owner.gain(node)
        if doubtful:
            effects.delete.append(node.identity.uid)

    def _doubtful(self, node: Node, ref: OwnerReference, owner: Node, effects: Effects) -> bool:
        """Whether a reference may not mean the owner that the graph knows under its uid."""
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
        if _starts_with(ORPHAN, meta, old):
            effects.orphan.append(node.identity.uid)
        elif _starts_with(FOREGROUND, meta, old):
            node.deleting_dependents, node.asked = True, 0
            effects.delete.extend(node.dependents)
            effects.delete.append(node.identity.uid)

    # -- an object is gone

    def remove(self, identity: Identity, parts: "Parts | None" = None) -> Effects | None:
        """An object was deleted: its dependents and its waiting owners are looked at."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return None
        effects = Effects()
        if node.virtual:
            self._observed(node, identity, parts, effects)
        return self._remove(node, identity, effects)

    def absent(self, identity: Identity, parts: "Parts | None" = None) -> Effects | None:
        """The server says that this object does not exist (though no event said so)."""
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
        """Those of a node's dependents that mean the absent coordinates."""
        matching, _ = parts
        if matching:
            self._absent.add(identity)
            effects.delete.extend(dependent.identity.uid for dependent in matching)
        return effects

    def _remove(self, node: Node, identity: Identity, effects: Effects) -> Effects:
        self._nodes.pop(node.identity.uid, None)
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
    """Dependents whose references mean this owner, and those that name its uid with other coordinates.

    Where an owner has many the caller may do this bit by bit, and give the graph the ``parts``.
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


def _starts_with(finalizer: str, meta: ObjectMeta, old: ObjectMeta | None) -> bool:
    """Whether an object's deletion has just begun to wait on this finalizer."""
    if meta.deletion_timestamp is None or finalizer not in meta.finalizers:
        return False
    return old is None or old.deletion_timestamp is None or finalizer not in old.finalizers


def _alternative(dependents: Iterable[Node], absent: Identity) -> Identity | None:
    """The next coordinates by which a dependent names the same uid: after the absent ones, else the first."""
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
