"""Joins the entries of a manager's record into trees: what followed from what. Pure.

The join is exact. A write's answer has the uid and version of the object; the change that a cache showed has both, too,
and the sync that it queued names the change. A deletion is joined by the uid. Everything else is said to be unknown, or
another client's: no edge is made of times or names.

A write that changed nothing has the version that was there before: it is not taken for the cause of a change that a
cache showed earlier than it was sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import msgspec
from msgspec.structs import replace

from kcm_cli.api.short_names import kind_of, plural_of
from kcm_cli.runtime.cause_ring import EVICTED, Entry, Later, Saw, Sync, Wrote, weight
from kcm_cli.runtime.causes import DELETED as CHANGE_DELETED
from kcm_cli.runtime.causes import LISTED, Change, Tick
from kcm_cli.trace.steps import (
    AUDIT,
    CONDITION,
    CONTROLLER_OF,
    CREATED,
    DELETED,
    ENDINGS,
    EVENT,
    IS,
    KIND_OF,
    KINDS_ABOVE,
    KUBELET,
    MANAGERS,
    REFUSED,
    SCALED,
    Step,
    actor_of,
)

KNOWN, INFERRED, UNKNOWN = "known", "inferred", "unknown"
OTHERS = "a change by another client"
AT_START = "unknown: it was there when this manager first listed it"
FORGOTTEN = "unknown: the record does not reach back so far"
LOST = "unknown: it may be a write of the manager whose answer was not read"
_RANDOM = 5
"""Characters that the API server adds to a generateName."""
_MARGIN_S = 60.0
"""A write is recorded at most this long before a cache shows it: where the record goes back further, a version that it
does not have is another client's."""


class Target(msgspec.Struct, frozen=True):
    """The object that is asked about. kind: as the user wrote it."""

    kind: str
    namespace: str
    name: str

    @property
    def text(self) -> str:
        return (
            f"{kind_of(self.kind)} {self.namespace}/{self.name}"
            if self.namespace
            else f"{kind_of(self.kind)} {self.name}"
        )

    def is_kind(self, kind: str, resource: str = "") -> bool:
        """Whether an object of this kind, or of this resource (plural), is of the target's."""
        wanted = kind_of(self.kind).lower()
        if kind:
            return kind.lower() in (wanted, plural_of(wanted)) or plural_of(kind) == wanted
        return resource.partition("/")[0] in (wanted, plural_of(wanted))

    def is_among(self, step: Step) -> bool:
        """Whether a step is the deletion of all objects of its kind in its namespace."""
        everything = step.verb == DELETED and step.key == f"{self.namespace}/" and not step.detail
        return everything and self.is_kind(step.kind)

    def is_key(self, key: str) -> bool:
        """Whether this is its key; objects without a namespace have their name."""
        return key in (f"{self.namespace}/{self.name}", self.name)


class Node(msgspec.Struct, eq=False):
    """A change, sync, write, wait or step, with what followed from it.

    what: its entry. edge: whether its parent, or the lack of one, is KNOWN. basis: how, where the ring does not say it.
    origin: of a node without a parent, where it comes from. more: further causes of a sync than the parent. birth: of a
    change, the write that created its object.
    """

    what: Change | Sync | Wrote | Later | Step
    edge: str = KNOWN
    basis: str = ""
    origin: str = ""
    more: int = 0
    birth: "Node | None" = None
    parent: "Node | None" = None
    children: "list[Node]" = msgspec.field(default_factory=list)

    @property
    def at(self) -> float:
        return self.what.at

    def mentions(self, target: Target) -> bool:
        """Whether it is about the target itself."""
        match self.what:
            case Change() | Sync() | Step():
                return target.is_kind(self.what.kind) and target.is_key(self.what.key)
            case Wrote():
                return target.is_kind(self.what.kind, self.what.resource) and target.is_key(self.what.key)
            case Later():
                return False

    def ancestors(self) -> "Iterator[Node]":
        """What it followed from, the nearest first."""
        node, seen = self.parent, {id(self)}
        while node is not None and id(node) not in seen:
            seen.add(id(node))
            yield node
            node = node.parent


def first_cause(birth: Node) -> Node:
    """What the creation of an object followed from in the end, also through changes of objects that were created
    before: a new pod of a rollout follows from an older one that became ready, both from the change of the Deployment.
    """
    seen: set[int] = set()
    node = birth
    while True:
        last = node
        for above in node.ancestors():
            last = above
        if last.birth is None or id(last) in seen:
            return last
        seen.add(id(last))
        node = last.birth


class _Joining:
    """The entries by what they are joined by."""

    def __init__(self, entries: Sequence[Entry], forgotten: int) -> None:
        self.first_at = min((entry.at for entry in entries), default=0.0) if forgotten else float("-inf")
        self.syncs: dict[int, Node] = {}
        self.made: dict[tuple[str, str], Node] = {}
        self.deletions: dict[str, Node] = {}
        self.births: dict[str, Node] = {}
        self.changes: dict[tuple[str, str, str, str, bool], Node] = {}
        self.collections: dict[tuple[str, str], list[Node]] = {}
        self.lost: set[str] = set()
        self.nodes: list[Node] = []
        self.saw: list[Change] = []
        self.marked: dict[str, str] = {}
        """The first version with a deletionTimestamp, by uid."""
        for entry in entries:
            if isinstance(entry, Saw):
                self.saw.append(entry.change)
                if entry.change.type != CHANGE_DELETED:
                    self.marked.setdefault(entry.change.uid, entry.change.version)
                continue
            if isinstance(entry, Wrote) and entry.agent:
                entry = replace(entry, controller=actor_of(entry.controller, entry.agent))
            node = Node(entry)
            self.nodes.append(node)
            if isinstance(entry, Sync):
                self.syncs[entry.number] = node
            elif isinstance(entry, Wrote):
                self._file(entry, node)

    def _file(self, wrote: Wrote, node: Node) -> None:
        succeeded = 200 <= wrote.code < 300
        if succeeded and wrote.verb == "deletecollection":
            self.collections.setdefault((wrote.resource, wrote.key.rpartition("/")[0]), []).append(node)
        if wrote.code == 0 or wrote.code >= 500 or (succeeded and not wrote.uid):
            self.lost.add(wrote.key)
        if not (succeeded and wrote.uid):
            return
        if wrote.version:
            self.made.setdefault((wrote.uid, wrote.version), node)
        if wrote.verb == "create" and "/" not in wrote.resource:
            self.births.setdefault(wrote.uid, node)
        if ends(wrote):
            self.deletions.setdefault(wrote.uid, node)

    def join(self) -> None:
        for node in tuple(self.nodes):
            entry = node.what
            if isinstance(entry, Wrote) and entry.agent and not entry.sync:
                continue  # of a client: where it comes from is who it is
            if isinstance(entry, Wrote | Later):
                sync = self.syncs.get(entry.sync)
                _attach(node, sync, FORGOTTEN if entry.sync else "unknown: written outside of a sync")
            elif isinstance(entry, Sync):
                self._join_sync(node, entry)
        for change in self.saw:
            self._source(change)

    def _join_sync(self, node: Node, entry: Sync) -> None:
        node.more = max(0, len(entry.causes) - 1) + entry.more
        if not entry.causes:
            _attach(node, None, "unknown: what queued it was not recorded")
            return
        weights = (weight(entry, one, self._writer(one)) for one in entry.causes)
        cause = max(zip(weights, enumerate(entry.causes), strict=True), key=lambda one: (one[0], _order(*one[1])))[1][1]
        if isinstance(cause, Change):
            _attach(node, self._source(cause), "")
        elif cause.sync:
            _attach(node, self.syncs.get(cause.sync), FORGOTTEN)
        else:
            node.origin = f"the clock: {cause.what}"

    def _writer(self, cause: Change | Tick) -> str | None:
        source = self._source(cause).what if isinstance(cause, Change) else None
        return source.controller if isinstance(source, Wrote) else None

    def _source(self, change: Change) -> Node:
        """The write that made a change or, where there is none, a node for the change."""
        found = self.made.get((change.uid, change.version)) if change.uid and change.version else None
        if (found is None or found.at > change.at) and change.type == CHANGE_DELETED:
            found = self.deletions.get(change.uid)
        if found is not None and found.at <= change.at:
            return found
        place = change.kind, change.key, change.uid, change.version, change.type == CHANGE_DELETED
        node = self.changes.get(place)
        if node is None:
            origin = self._origin(change)
            birth = self.births.get(change.uid) if change.uid else None
            node = Node(self._shown(change), edge=KNOWN if origin == OTHERS else UNKNOWN, origin=origin, birth=birth)
            self.changes[place] = node
            self.nodes.append(node)
            together = self._together(change)
            if together is not None:
                _attach(node, together, "")
                node.edge, node.basis, node.origin = INFERRED, "time", ""
        return node

    def _shown(self, change: Change) -> Change:
        """A change as it is shown: a version after the one that marked its object did not mark it."""
        if not change.deleting or change.type == CHANGE_DELETED:
            return change
        deleted = self.deletions.get(change.uid)
        wrote = deleted.what if deleted is not None and deleted.at <= change.at else None
        first = wrote.version if isinstance(wrote, Wrote) else self.marked.get(change.uid, "")
        return change if first in ("", change.version) else replace(change, deleting=False, why="")

    def _together(self, change: Change) -> Node | None:
        """The deletion of a collection, whose answer names no object, shortly before an object's end."""
        if not (change.deleting or change.type == CHANGE_DELETED):
            return None
        found = self.collections.get((plural_of(change.kind), change.key.rpartition("/")[0]), ())
        return next((node for node in reversed(found) if change.at - _MARGIN_S <= node.at <= change.at), None)

    def _origin(self, change: Change) -> str:
        if change.type == LISTED:
            return AT_START
        namespace = change.key.partition("/")[0]
        places = (change.key, change.key[:-_RANDOM], f"{namespace}/" if "/" in change.key else "")
        if not self.lost.isdisjoint(places):
            return LOST
        if not change.uid or change.at - _MARGIN_S < self.first_at:
            return FORGOTTEN
        return OTHERS


def _order(index: int, cause: Change | Tick) -> int:
    """Of several changes the first one counts, of several delays the last one, which a later sync asked for."""
    return index if isinstance(cause, Tick) else -index


def _attach(node: Node, parent: Node | None, otherwise: str) -> None:
    if parent is None:
        node.edge, node.origin = UNKNOWN, otherwise
    else:
        node.parent = parent
        parent.children.append(node)


class Trace(msgspec.Struct, frozen=True, eq=False):
    """What is known of a target. roots: first causes, the oldest first, with what is about the target, and followed
    from it. nodes: all of these."""

    target: Target
    roots: tuple[Node, ...]
    nodes: tuple[Node, ...]


def trace(entries: Iterable[Entry], target: Target, *, forgotten: int = 0, earliest: float = float("-inf")) -> Trace:
    """Join entries, and leave out what has nothing to do with the target. forgotten: how many the record has lost.
    earliest: what is about the target before this time is left out, unless something later followed from it."""
    joining = _Joining(list(entries), forgotten)
    joining.join()
    roots = sorted((node for node in joining.nodes if node.parent is None), key=lambda node: node.at)
    kept = _kept(roots, target, earliest)
    nodes = [node for node in joining.nodes if id(node) in kept]
    for node in nodes:
        node.children = sorted((child for child in node.children if id(child) in kept), key=lambda child: child.at)
    return Trace(target, tuple(root for root in roots if id(root) in kept), tuple(nodes))


def _kept(roots: list[Node], target: Target, earliest: float) -> set[int]:
    """The ids of the nodes that mention the target, of what they followed from, and of what followed from them. What is
    its own cause, which no manager records, is not reached from a root."""
    kept: set[int] = set()
    waiting = [(root, False) for root in roots]
    while waiting:
        node, below = waiting.pop()
        named = below or node.mentions(target)
        if named and node.at >= earliest:
            kept.add(id(node))
            above = node.parent
            while above is not None and id(above) not in kept:
                kept.add(id(above))
                above = above.parent
        waiting.extend((child, named) for child in node.children)
    return kept


_PASSING = frozenset({"Conflict", "NotFound", "AlreadyExists"})


def deletion(found: Trace) -> Node | None:
    """What deleted the target: a write, a step or, where another client did, the change that showed it. None where
    nothing is known to have deleted it, or where it was created again."""
    shown: Node | None = None
    together: Node | None = None
    for node in sorted(found.nodes, key=lambda node: node.at, reverse=True):
        if isinstance(node.what, Step) and found.target.is_among(node.what):
            together = together or node
        if not node.mentions(found.target):
            continue
        part = _part(node.what)
        if part is _Part.END:
            return node
        if part is _Part.BIRTH:
            break
        if part is _Part.SHOWN:
            shown = _better(node, shown) if isinstance(node.what, Step) else node  # the first one that showed it
    return _first_to_end(shown) if shown is not None else together


class _Part(Enum):
    """What an entry is in the life of its object: BIRTH, its END, or what only shows an end that was decided before."""

    BIRTH, SHOWN, END = range(3)


def _part(what: Change | Sync | Wrote | Later | Step) -> _Part | None:
    match what:
        case Wrote():
            if not 200 <= what.code < 300:
                return None
            if ends(what):
                last = what.controller.startswith(KUBELET) and not what.reason.startswith(EVICTED)
                return _Part.SHOWN if last else _Part.END  # a kubelet deletes what has ended, whoever ended it
            return _Part.BIRTH if what.verb == "create" and "/" not in what.resource else None
        case Change():
            if what.type == CHANGE_DELETED or what.deleting:
                return _Part.SHOWN
            return _Part.BIRTH if what.type == "ADDED" else None
        case Step():
            return _Part.SHOWN if what.verb in ENDINGS else _Part.BIRTH if what.verb == CREATED else None
    return None


def ends(wrote: Wrote) -> bool:
    """Whether a write deletes objects, or evicts one."""
    deleted = wrote.verb in ("delete", "deletecollection")
    return deleted or wrote.resource.endswith("/eviction") or wrote.reason.startswith(EVICTED)


def _first_to_end(shown: Node | None) -> Node | None:
    """What a change, or a kubelet's last word to a pod that ends, followed from, if that is another end."""
    if shown is not None and isinstance(shown.what, Wrote):
        return next((one for one in shown.ancestors() if isinstance(one.what, Wrote) and ends(one.what)), shown)
    above = shown.parent if shown is not None else None
    while above is not None and shown is not None and _is_only_shown(shown):
        what = above.what
        if isinstance(what, Wrote):
            return above if what.verb == "deletecollection" else shown
        if not isinstance(what, Step) or what.verb not in ENDINGS:
            break
        shown, above = above, above.parent
    return shown


def _is_only_shown(node: Node) -> bool:
    what = node.what
    if isinstance(what, Step):
        return not what.actor or (what.actor.startswith(KUBELET) and what.verb == DELETED)
    return isinstance(what, Change)


_TRUST = {AUDIT: 0, CONDITION: 1, EVENT: 1}


def _better(node: Node, than: Node | None) -> Node:
    """Of two steps that ended an object the one that says who did; else the earlier one."""

    def trust(one: Node) -> tuple[int, bool]:
        what = one.what
        if not isinstance(what, Step) or not what.actor:
            return 9, False
        return (6 if _is_only_shown(one) else _TRUST.get(what.source, 5)), one.parent is None

    return than if than is not None and trust(than) < trust(node) else node


def refused(found: Trace) -> list[Node]:
    """The writes that were refused and not repeated with success, of the kind of the last one; the oldest first."""
    writes = sorted(
        ((node, node.what) for node in found.nodes if isinstance(node.what, Wrote)), key=lambda pair: pair[1].at
    )
    held: dict[tuple[str, str, str], list[Node]] = {}
    for node, wrote in writes:
        place = wrote.controller, wrote.verb, wrote.owner or f"{wrote.resource} {wrote.key}"
        if 200 <= wrote.code < 300:
            held.pop(place, None)
        elif wrote.refusal not in _PASSING:
            held.setdefault(place, []).append(node)
    return max(held.values(), key=lambda nodes: nodes[-1].at, default=[])


def troubles(found: Trace) -> list[Node]:
    """The last steps that say what keeps the target, or what belongs to it, from going on: what an object refuses
    first, then what its Pods wait for. Those of one kind, the oldest first."""
    held: dict[tuple[str, str], list[Node]] = {}
    refusals: dict[tuple[str, str], list[Node]] = {}
    """Creations that controllers were refused, by owner."""
    over: set[int] = set()
    for node in sorted(found.nodes, key=lambda node: node.at):
        step = node.what
        if not isinstance(step, Step):
            continue
        if step.settles or step.verb in (DELETED, CREATED):
            held.pop(step.about.place, None)
        if step.trouble:
            held.setdefault(step.about.place, []).append(node)
        if step.verb == REFUSED and step.makes:
            owner = step.behind or step.about
            if _acts_for(step.actor, owner.kind):
                refusals.setdefault(owner.place, []).append(node)
        elif step.verb == CREATED:
            for place in _owners(step):
                over.update(id(one) for one in refusals.pop(place, ()))
    every = [node for nodes in held.values() for node in nodes if id(node) not in over]
    worst = min(every, key=lambda node: (_weight(node), -node.at), default=None)
    if worst is None:
        return []
    weight, kind = _weight(worst), getattr(worst.what, "kind", "")
    alike = [node for node in every if _weight(node) == weight and getattr(node.what, "kind", "") == kind]
    return sorted(alike, key=lambda node: node.at)


def _acts_for(actor: str, kind: str) -> bool:
    """Whether an actor is the controller of owners of a kind, or a manager with one name for all of them."""
    return kind in CONTROLLER_OF and (KIND_OF.get(actor) == kind or actor in MANAGERS)


def _owners(made: Step) -> Iterator[tuple[str, str]]:
    """The places of owners for which a controller may have made an object: the one that is known or, where none is, by
    the name, which for a Pod of an indexed Job has two parts more."""
    kinds = [kind for kind in KINDS_ABOVE.get(made.kind, ()) if _acts_for(made.actor, kind)]
    if made.behind is not None:
        if made.behind.kind in kinds:
            yield made.behind.place
        return
    shorter = made.key.rpartition("-")[0]
    yield from ((kind, shorter) for kind in kinds)
    if "Job" in kinds:
        yield "Job", shorter.rpartition("-")[0]


def is_grave(node: Node) -> bool:
    """Whether it is a refusal, or what a Pod itself says; Events alone may tell of what is over."""
    return not isinstance(node.what, Step) or _weight(node) <= 1


def _weight(node: Node) -> int:
    step = node.what
    assert isinstance(step, Step)
    if step.verb == REFUSED:
        return 0
    if step.kind == "Pod":
        return 1 if step.verb == IS else 2
    return 3


def swings(found: Trace) -> list[Node]:
    """The scalings by an autoscaler, the oldest first; none where there are fewer than MOST_CALM."""
    nodes = []
    for node in sorted(found.nodes, key=lambda node: node.at):
        what = node.what
        scaled = isinstance(what, Step) and what.verb == SCALED and what.actor == AUTOSCALER
        if isinstance(what, Wrote):
            scaled = what.controller == AUTOSCALER and what.resource.endswith("/scale") and 200 <= what.code < 300
        if scaled:
            nodes.append(node)
    writes = [node for node in nodes if not isinstance(node.what, Step) or node.what.source == AUDIT]
    nodes = writes or nodes  # Events tell of the same
    total = sum(node.what.count if isinstance(node.what, Step) else 1 for node in nodes)
    return nodes if total >= MOST_CALM else []


AUTOSCALER = "horizontal-pod-autoscaler-controller"
MOST_CALM = 4
"""Fewer scalings than this do not flap."""
