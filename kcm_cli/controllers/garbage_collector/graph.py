"""Who is owned by whom: the graph that the garbage collector decides on.

A node is an object, known by its uid. An owner that is only named in a reference is *virtual* until its own event
comes, or until the server says that it does not exist. The graph changes with each event; what then has to be
looked at is returned as ``Effects``. Pure: no queue, no client.

This is a fifth file of its controller because the graph is neither a snapshot of one key nor a decision on it.

upstream: pkg/controller/garbagecollector/graph_builder.go#processGraphChanges
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kcm_cli.machinery.meta import ObjectMeta, OwnerReference
from kcm_cli.machinery.recent import Recent

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True, order=True)
class Identity:
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


@dataclass(slots=True, eq=False)
class Node:
    """An object in the graph. ``dependents`` by uid."""

    identity: Identity
    owners: tuple[OwnerReference, ...] = ()
    dependents: dict[str, "Node"] = field(default_factory=dict)
    virtual: bool = False
    deleting_dependents: bool = False
    being_deleted: bool = False

    def blocking_dependents(self) -> list["Node"]:
        """Dependents for which this node's deletion in the foreground waits."""
        uid = self.identity.uid
        return [
            dependent
            for dependent in self.dependents.values()
            if any(ref.uid == uid and ref.block_owner_deletion for ref in dependent.owners)
        ]


@dataclass(slots=True)
class Effects:
    """What to look at now: uids to try to delete, to try later, to orphan from; references to a wrong namespace."""

    delete: list[str] = field(default_factory=list)
    delete_later: list[str] = field(default_factory=list)
    orphan: list[str] = field(default_factory=list)
    wrong_namespace: list[tuple[Node, OwnerReference]] = field(default_factory=list)


class Graph:
    """All nodes by uid."""

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

    def observe(self, identity: Identity, meta: ObjectMeta, old: ObjectMeta | None) -> Effects | None:
        """Take in an object as it is now; None if nothing follows. ``old``: as it was before, if it was known."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return self._insert(identity, meta, old)
        if not node.virtual and node.owners == meta.owner_references and meta.deletion_timestamp is None:
            return None
        effects = Effects()
        if node.virtual:
            self._observed(node, identity, effects)
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

    def _observed(self, node: Node, identity: Identity, effects: Effects) -> None:
        """A virtual node turns out to exist; dependents that meant something else are looked at again."""
        if identity != node.identity:
            _, wrong = partition(node.dependents.values(), identity)
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
        self._add_to_owners(node, added, effects)
        for uid in sorted(before.keys() - after.keys()):
            owner = self._nodes.get(uid)
            if owner is not None:
                owner.dependents.pop(node.identity.uid, None)

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
            owner.dependents[node.identity.uid] = node
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
            node.deleting_dependents = True
            effects.delete.extend(node.dependents)
            effects.delete.append(node.identity.uid)

    # -- an object is gone

    def remove(self, identity: Identity) -> Effects | None:
        """An object was deleted: its dependents and its waiting owners are looked at."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return None
        effects = Effects()
        if node.virtual:
            self._observed(node, identity, effects)
        return self._remove(node, identity, effects)

    def absent(self, identity: Identity) -> Effects | None:
        """The server says that this object does not exist (though no event said so)."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return None
        if not node.virtual:
            if node.identity == identity:
                return self._remove(node, identity, Effects())
            return self._orphans_of(node, identity, Effects())
        _, others = partition(node.dependents.values(), identity)
        if not others:
            return self._remove(node, identity, Effects())
        effects = self._orphans_of(node, identity, Effects())
        if node.identity == identity:
            alternative = _alternative(others, identity)
            if alternative is not None:
                node.identity = alternative
                effects.delete_later.append(identity.uid)
        return effects

    def _orphans_of(self, node: Node, identity: Identity, effects: Effects) -> Effects:
        """Those of a node's dependents that mean the absent coordinates."""
        matching, _ = partition(node.dependents.values(), identity)
        if matching:
            self._absent.add(identity)
            effects.delete.extend(dependent.identity.uid for dependent in matching)
        return effects

    def _remove(self, node: Node, identity: Identity, effects: Effects) -> Effects:
        self._nodes.pop(node.identity.uid, None)
        for ref in node.owners:
            owner = self._nodes.get(ref.uid)
            if owner is not None:
                owner.dependents.pop(node.identity.uid, None)
                if owner.deleting_dependents:
                    effects.delete.append(ref.uid)
        if node.dependents:
            self._absent.add(identity)
            effects.delete.extend(node.dependents)
        return effects


def partition(dependents: Iterable[Node], owner: Identity) -> tuple[list[Node], list[Node]]:
    """Dependents whose references mean this owner, and those that name its uid with other coordinates."""
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
