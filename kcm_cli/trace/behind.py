"""Links steps: what each followed from, as far as that is known or can be inferred. Pure.

Known is what an owner reference says by uid. Inferred is what the time says: of the changes to which an actor reacts,
the last one before its own. Where there is none, nothing is made up.

upstream: none
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from kcm_cli.runtime.cause_ring import Wrote
from kcm_cli.runtime.causes import ADDED, Change
from kcm_cli.runtime.causes import DELETED as CHANGE_DELETED
from kcm_cli.trace.history import Relations
from kcm_cli.trace.join import (
    AUTOSCALER,
    FORGOTTEN,
    INFERRED,
    KNOWN,
    OTHERS,
    UNKNOWN,
    Node,
    Target,
    Trace,
    deletion,
    first_cause,
    troubles,
)
from kcm_cli.trace.steps import (
    AUDIT,
    BOUND,
    CHANGED,
    CONTROLLER_OF,
    CREATED,
    DEEDS,
    DELETED,
    ENDED,
    ENDINGS,
    GUESS,
    IS,
    KIND_OF,
    KINDS_ABOVE,
    KUBELET,
    MANAGERS,
    MARKED,
    REFUSED,
    SCALED,
    TAINTED,
    Ref,
    Step,
)

OWNER, TIME, NAME, SAME = "owner reference", "time", "name and time", "same object"
_CREATED = 201
_ROUGH_S = 1.0
_CLOSE_S = 5.0
"""The times that two sources have for one deletion differ by less."""
_GRACE_S = 120.0
"""A pod that is deleted together with others is gone after less time, as a rule."""
_LONGEST_S = 86_400.0
"""What happened longer before is no cause."""
_WANTS = frozenset((CREATED, CHANGED, SCALED, MARKED, DELETED, ENDED))
"""Changes of an owner to which its controller reacts."""
_LOST = frozenset((MARKED, DELETED, ENDED, *ENDINGS))
"""Ends of a child which an owner's controller replaces."""
_GONE = frozenset((MARKED, DELETED))
_MAKING = frozenset((CHANGED, SCALED, TAINTED))
_COLLECTOR, _PODGC, _SCHEDULER = "garbage-collector-controller", "pod-garbage-collector-controller", "kube-scheduler"
_DAEMONS = CONTROLLER_OF["DaemonSet"]
_OF_NODES = frozenset((CREATED, CHANGED, TAINTED, MARKED, DELETED))
"""Changes of a node for which a daemon's pod comes or goes."""
_EVICTERS = frozenset(("node-controller", "taint-eviction-controller", "node-lifecycle-controller", _PODGC))
_TTL, _NAMESPACES = "ttl-after-finished-controller", "namespace-controller"
_FOR_OWNERS = frozenset((*CONTROLLER_OF.values(), *KIND_OF, *MANAGERS))
_LEVELS, _CIRCLE, _LOOKS = 8, 64, 32
"""Bounds of what is looked at for one step, so that a log of any content takes time in proportion to its length."""
NOT_SEEN = "unknown: what it followed from was not seen"
NOBODY = "unknown: nothing says who did it"
_RANK = {CREATED: 0, CHANGED: 1, TAINTED: 1, SCALED: 2, BOUND: 3, ENDED: 4}


class _Behind(msgspec.Struct, frozen=True):
    """Where the cause of a step may be: these verbs of an object, or of the other children of an owner. node: or, if it
    is not "", changes of the node of this name."""

    about: Ref
    verbs: frozenset[str]
    basis: str
    siblings: bool = False
    node: str = ""


def _step(node: Node) -> Step:
    assert isinstance(node.what, Step)
    return node.what


class Linked:
    """A node for each step, with what it followed from. nodes: all, by time."""

    def __init__(self, steps: Iterable[Step], relations: Relations) -> None:
        self.relations = relations
        ordered = sorted(dict.fromkeys(steps), key=lambda one: (one.at, _RANK.get(one.verb, 5 if one.actor else 6)))
        self.nodes = [Node(one, edge=UNKNOWN) for one in ordered]
        self._places = {one.about.place for one in ordered}
        self._keys: dict[tuple[str, str], list[str]] = {}
        for kind, key in self._places:
            self._keys.setdefault((kind, f"{key.rpartition('/')[0]}/"), []).append(key)
        self._of: dict[tuple[str, str], list[Node]] = {}
        self._lost: dict[tuple[str, str], list[Node]] = {}
        self._taken: dict[tuple[tuple[str, str], str], list[float]] = {}
        """When the controller deleted pods, by DaemonSet and node."""
        for node in self.nodes:
            step = _step(node)
            if step.verb in DEEDS:
                self._of.setdefault(step.about.place, []).append(node)
            is_lost = step.verb in _LOST and step.actor not in _FOR_OWNERS  # not what its own controller took away
            if is_lost and (owner := self.owner(step)) is not None:
                self._lost.setdefault(owner[0].place, []).append(node)
            name = relations.nodes.get(step.about.key, "") if step.verb in _GONE and step.actor == _DAEMONS else ""
            if name and (owner := self.owner(step)) is not None:
                self._taken.setdefault((owner[0].place, name), []).append(node.at)
        for node in self.nodes:
            self._guess(node)
            self._explain(node)
        for node in self.nodes:
            self._link(node)
        for node in self.nodes:
            if node.parent is not None:
                node.parent.children.append(node)

    def about(self, target: Target, earliest: float = float("-inf")) -> Trace:
        """What is about a target, or about what belongs to it, and what that followed from."""
        kept: dict[int, Node] = {}
        known: dict[object, bool] = {}
        for node in self.nodes:
            if node.at < earliest:
                continue
            step = _step(node)
            place = step.about.place, step.behind, step.actor if step.verb == REFUSED else ""
            belongs = known.get(place)
            if belongs is None:
                belongs = known[place] = self._belongs(step, target)
            if not belongs and not target.is_among(step):
                continue
            above: Node | None = node
            while above is not None and id(above) not in kept:
                kept[id(above)] = above
                above = above.parent
        for node in kept.values():
            node.children = [child for child in node.children if id(child) in kept]
        ordered = [node for node in self.nodes if id(node) in kept]
        return Trace(target, tuple(node for node in ordered if node.parent is None), tuple(ordered))

    def made(self, change: Change) -> Node | None:
        """The step of another client that a cache showed as a change, by uid and time. Where no time fits, it is the
        one step whose time is not recorded."""
        ends = change.deleting or change.type == CHANGE_DELETED
        verbs = ENDINGS if ends else frozenset((CREATED,)) if change.type == ADDED else _MAKING
        early = _CLOSE_S if ends else _ROUGH_S
        place = change.kind, change.key
        around = {id(node): node for node in (*self._of.get(place, ())[:_LOOKS], *self._near(place, change.at))}
        found = [
            node
            for node in around.values()
            if _step(node).verb in verbs and _step(node).actor and _step(node).about.uid in ("", change.uid)
        ]
        close = [node for node in found if change.at - early <= node.at <= change.at + _ROUGH_S]
        vague = [node for node in found if _step(node).vague and node.at + _CLOSE_S < change.at]
        return min(close or vague, key=lambda node: (_step(node).source != AUDIT, -node.at), default=None)

    def _belongs(self, step: Step, target: Target) -> bool:
        """Whether the object of a step is the target, or one of those that it owns or scales."""
        place = step.about.place
        for _ in range(_LEVELS):
            if target.is_kind(place[0]) and target.is_key(place[1]):
                return True
            owner = self.owner(step)
            if owner is None:
                break
            place = owner[0].place
            step = Step(step.at, IS, Ref(*place))
        if not target.is_kind("HorizontalPodAutoscaler"):
            return False
        scaled = (ref for key, ref in self.relations.targets.items() if target.is_key(key))
        return any(ref.place == place for ref in scaled)

    def owner(self, step: Step) -> tuple[Ref, str] | None:
        """The owner of the object of a step, and how that is known: by its reference or, where no version of the
        object was seen, by its name, if the owner was seen."""
        found = self.relations.owners.get(step.about.place)
        if found is not None:
            return found, OWNER
        said = self.relations.said.get(step.about.place)
        if said is not None:
            return said, TIME
        if step.behind is not None and step.behind.kind in CONTROLLER_OF:
            return step.behind, OWNER if step.source == AUDIT else TIME
        kinds = (KIND_OF[step.actor],) if step.actor in KIND_OF else KINDS_ABOVE.get(step.about.kind, ())
        name = step.about.key
        if name.endswith("/") and step.verb == REFUSED:  # the name was to be made by the server
            alike = [key for kind in kinds for key in self._keys.get((kind, name), ())]
            return (Ref(kinds[0], alike[0]), NAME) if len(alike) == 1 else None
        for _ in range(2):  # the name of a Pod of an indexed Job has two parts more
            name = name.rpartition("-")[0]
            for kind in kinds:
                if name and kind != step.about.kind and (kind, name) in self._places:
                    return Ref(kind, name), NAME
        return None

    def _guess(self, node: Node) -> None:
        """Who deleted an object, where nothing says so, but what else went says it."""
        step = _step(node)
        if step.verb not in _GONE or step.actor or self._ending_elsewhere(node) is not None:
            return
        owner = self.owner(step)
        namespace = Ref("Namespace", step.about.key.partition("/")[0])
        actor = ""
        if self._collection(node) is not None:
            return
        if owner is not None and self._last(node, owner[0], _GONE) is not None:
            actor = _COLLECTOR
        elif "/" in step.about.key and self._last(node, namespace, _GONE) is not None:
            actor = _NAMESPACES
        elif step.about.kind == "Job" and step.about.uid in self.relations.expiring:
            ended = self._last(node, step.about, frozenset((ENDED,)))
            after = self.relations.expiring[step.about.uid]
            if ended is not None and abs(step.at - ended.at - after) <= max(_CLOSE_S, after / 10):
                actor = _TTL
        if actor:
            node.what = msgspec.structs.replace(step, actor=actor, source=GUESS)

    def _explain(self, node: Node) -> None:
        """Why an autoscaler wrote, which its Event says and its write does not."""
        step = _step(node)
        if step.verb != SCALED or step.actor != AUTOSCALER or step.detail:
            return
        near = (_step(one) for one in self._near(step.about.place, step.at))
        same = [one for one in near if one.verb == SCALED and one.actor == AUTOSCALER and one.detail]
        close = [one for one in same if abs(one.at - step.at) <= _CLOSE_S]
        if close:
            event = min(close, key=lambda one: abs(one.at - step.at))
            node.what = msgspec.structs.replace(step, detail=event.detail, behind=event.behind)

    def _ending_elsewhere(self, node: Node) -> Node | None:
        """Another step that says who ended the same object, and at the same time."""
        step = _step(node)
        for other in self._near(step.about.place, node.at):
            one = _step(other)
            is_close = (
                abs(other.at - node.at) <= _CLOSE_S or (step.verb == DELETED and one.verb == MARKED) or step.vague
            )
            if other is not node and one.actor and one.verb in ENDINGS and is_close and _same(one.about, step.about):
                return other
        return None

    def _collection(self, node: Node) -> Node | None:
        """The deletion of all objects of a kind in a namespace, shortly before an object's end."""
        step = _step(node)
        found = self._near((step.about.kind, f"{step.about.key.rpartition('/')[0]}/"), node.at)
        close = [one for one in found if node.at - _GRACE_S <= one.at <= node.at + _ROUGH_S and one is not node]
        return close[-1] if close else None

    def _hint(self, step: Step) -> Ref | None:
        """What another step of the same actor, and of the same end, names as the reason."""
        if step.behind is not None or step.verb not in ENDINGS:
            return step.behind
        others = (_step(one) for one in self._near(step.about.place, step.at))
        return next(
            (one.behind for one in others if one.actor == step.actor and one.verb in ENDINGS and one.behind), None
        )

    def _link(self, node: Node) -> None:
        step = _step(node)
        ending = self._ending_elsewhere(node) if step.verb in _GONE and not step.actor else None
        if ending is not None and not _below(ending, node):
            node.parent, node.edge, node.basis = ending, KNOWN, SAME
            return
        together = self._collection(node) if step.verb in _GONE and (not step.actor or _is_kubelet(step)) else None
        if together is not None and not _below(together, node):
            node.parent, node.edge, node.basis = together, INFERRED, TIME
            return
        for behind in self._behind(step):
            found = self._last(node, behind.about, behind.verbs)
            if behind.siblings:
                other = self._last_child(node, behind.about)
                if other is not None and (found is None or other.at > found.at):
                    found = other
            if behind.node:
                other = self._last(node, Ref("Node", behind.node), _OF_NODES)
                if other is not None and (found is None or other.at > found.at):
                    found = other if found is None else self._cause_of_daemon(node, found, other, behind)
            if found is not None:
                self._attach(node, found, behind)
                return
        if step.verb in _GONE and not step.actor:
            node.origin = NOBODY
        elif step.actor in _FOR_OWNERS or step.actor in _EVICTERS or step.actor == _COLLECTOR:
            node.origin = NOT_SEEN

    def _cause_of_daemon(self, node: Node, of_set: Node, of_node: Node, behind: _Behind) -> Node:
        """What a daemon's pod came or went for: the change of its DaemonSet, or the later one of its node. The first
        row that fits decides."""
        came = _step(node).verb == CREATED
        at_once = node.at - of_node.at <= _CLOSE_S
        rows = (
            (came and self._replaces(node, of_node, behind), of_set),  # after the node's change, a pod was taken away
            (came, of_node),  # the node had no pod
            (_step(of_set).verb == CREATED, of_node),  # a DaemonSet that is new takes no pod away
            (at_once, of_node),  # the node does not want the pod: it waits for no turn
            (self._is_younger(node, of_set), of_node),  # the pod was made of the changed DaemonSet
            (True, of_set),  # it is older, and waited for its turn
        )
        return next(cause for fits, cause in rows if fits)

    def _replaces(self, node: Node, after: Node, behind: _Behind) -> bool:
        """Whether a daemon's pod came in place of one that was taken away after this."""
        times = self._taken.get((behind.about.place, behind.node), ())
        index = bisect_right(times, after.at)
        return index < len(times) and times[index] <= node.at

    def _is_younger(self, node: Node, change: Node) -> bool:
        """Whether the object of a step was created after a change. One whose creation was not seen is older."""
        step = _step(node)
        near = (one for one in self._near(step.about.place, node.at) if _step(one).verb == CREATED)
        births = [one.at for one in near if one.at <= node.at and _same(_step(one).about, step.about)]
        return bool(births) and births[-1] >= change.at

    def _attach(self, node: Node, found: Node, behind: _Behind) -> None:
        step, above = _step(node), _step(found)
        node.parent = found
        born = step.verb == CREATED and above.verb == CREATED and above.about.place == behind.about.place
        is_known = behind.basis == SAME or (behind.basis == OWNER and born)
        node.edge = KNOWN if is_known else INFERRED
        node.basis = behind.basis if is_known or behind.basis == NAME else TIME

    def _behind(self, step: Step) -> Iterator[_Behind]:
        """Where to look, the likeliest first."""
        about, owner = step.about, self.owner(step)
        if step.verb not in DEEDS:
            yield _Behind(about, _WANTS | {BOUND}, SAME)
        elif step.verb == BOUND:
            yield _Behind(about, frozenset((CREATED,)), SAME)
        elif step.verb == ENDED:
            yield _Behind(about, frozenset((BOUND, CREATED)), SAME)
        elif step.verb == DELETED and _is_kubelet(step):
            yield _Behind(about, ENDINGS, SAME)
        else:
            yield from self._behind_actor(step)
        if owner is None:
            return
        if step.actor == _COLLECTOR:
            yield _Behind(owner[0], _GONE, owner[1])
        elif step.verb == CREATED or step.verb not in DEEDS or step.actor in _FOR_OWNERS:
            name = self.relations.nodes.get(about.key, "") if step.actor == _DAEMONS and about.kind == "Pod" else ""
            yield _Behind(owner[0], _WANTS, owner[1], step.verb == CREATED, name)

    def _behind_actor(self, step: Step) -> Iterator[_Behind]:
        """Where to look for what an actor reacts to, other than to owners."""
        about, behind = step.about, self._hint(step)
        if step.actor == _NAMESPACES and "/" in about.key:
            yield _Behind(Ref("Namespace", about.key.partition("/")[0]), _GONE, TIME)
        elif step.actor == _TTL:
            yield _Behind(about, frozenset((ENDED,)), TIME)
        elif step.actor in _EVICTERS and about.kind == "Pod":
            name = self.relations.nodes.get(about.key)
            if name:
                yield _Behind(Ref("Node", name), frozenset((TAINTED, DELETED, MARKED)), TIME)
        elif behind is not None and (behind.kind == "HorizontalPodAutoscaler" or step.actor == _SCHEDULER):
            yield _Behind(behind, DEEDS, TIME)

    def _near(self, place: tuple[str, str], at: float) -> Sequence[Node]:
        """The steps of an object around a time."""
        found = self._of.get(place, [])
        index = bisect_right(found, at, key=lambda one: one.at) if len(found) > _LOOKS else 0
        return found[max(0, index - _LOOKS) : index + _LOOKS]

    def _last(self, node: Node, about: Ref, verbs: frozenset[str]) -> Node | None:
        return self._before(node, self._of.get(about.place, ()), about, verbs)

    def _last_child(self, node: Node, owner: Ref) -> Node | None:
        """The last end of another object of an owner."""
        return self._before(node, self._lost.get(owner.place, ()), None, _LOST)

    def _before(self, node: Node, among: Sequence[Node], about: Ref | None, verbs: frozenset[str]) -> Node | None:
        """The last of these steps before a node. A time in full seconds may be up to a second later than it says."""
        step = _step(node)
        latest = node.at + (_ROUGH_S if step.rough or step.source != AUDIT else 0.0)
        first = bisect_right(among, latest, key=lambda one: one.at) - 1
        for index in range(first, max(-1, first - _LOOKS), -1):
            found = among[index]
            if found.at < node.at - _LONGEST_S:
                return None
            one = _step(found)
            is_early = one.vague and one.verb != DELETED and node.at < found.at + _CLOSE_S
            fits = (
                one.verb in verbs
                and not is_early
                and not _is_upkeep(one)
                and (_same(one.about, about) if about is not None else one.about != step.about)
            )
            if found is node or not fits or (one.actor and one.actor == step.actor and step.actor in _FOR_OWNERS):
                continue
            if not _below(found, node):
                return found
        return None


def _is_upkeep(step: Step) -> bool:
    """Whether it is a change of a node by a program, which are many, and of which is not known what they changed."""
    is_program = step.actor in MANAGERS or step.actor.endswith("-controller") or _is_kubelet(step)
    return step.kind == "Node" and step.verb == CHANGED and not step.detail and is_program


def _is_kubelet(step: Step) -> bool:
    """Whether it is a kubelet that says that a pod's containers have ended."""
    return step.actor.startswith(KUBELET)


def _same(one: Ref, other: Ref) -> bool:
    """Whether two references to a place may be to one object."""
    return not (one.uid and other.uid) or one.uid == other.uid


def _below(node: Node, other: Node) -> bool:
    """Whether a node followed from the other one. In a circle all times are within a few seconds of each other, so that
    it is a short one."""
    return node is other or any(above is other for above in islice(node.ancestors(), _CIRCLE))


def combined(ring: Trace, linked: Linked, earliest: float = float("-inf")) -> Trace:
    """A trace from a manager's record, with what other sources know of the changes of other clients, and of what keeps
    an object from going on. Everything else is in the record itself, which is exact."""
    others = linked.about(ring.target, earliest)
    nodes = {id(node): node for node in ring.nodes}
    births = [first_cause(node.birth) for node in ring.nodes if node.birth is not None]
    for root in {id(one): one for one in (*ring.roots, *births)}.values():
        change = root.what
        if not isinstance(change, Change) or root.origin not in (OTHERS, FORGOTTEN):
            continue
        found = linked.made(change)
        if found is not None:
            root.parent, root.edge, root.basis = found, INFERRED, TIME
            found.children = [*found.children, root]
            _with_ancestors(found, nodes)
    for node in troubles(others):
        _known_birth(node, ring)
    ended = deletion(others) if deletion(ring) is None else None
    for node in others.nodes if not ring.nodes else (*troubles(others), *((ended,) if ended is not None else ())):
        _with_ancestors(node, nodes)
    for node in nodes.values():
        node.children = [child for child in node.children if id(child) in nodes]
    rank = {id(node): number for number, node in enumerate(linked.nodes)}
    ordered = sorted(nodes.values(), key=lambda node: (node.at, rank.get(id(node), -1)))
    return Trace(ring.target, tuple(node for node in ordered if node.parent is None), tuple(ordered))


def _known_birth(node: Node, ring: Trace) -> None:
    """Let a state of an object follow from the write that created it, or bound it to a node, if that is recorded."""
    uid = _step(node).about.uid
    made = [one for one in ring.nodes if isinstance(one.what, Wrote) and one.what.uid == uid and _makes(one.what)]
    if uid and made:
        if node.parent is not None:
            node.parent.children.remove(node)
        last = max(made, key=lambda one: one.at)
        node.parent, node.edge, node.basis, node.origin = last, KNOWN, SAME, ""
        last.children.append(node)


def _makes(wrote: Wrote) -> bool:
    """Whether a write creates its object, or binds a pod."""
    return wrote.code == _CREATED and ("/" not in wrote.resource or wrote.resource.endswith("/binding"))


def _with_ancestors(node: Node | None, kept: dict[int, Node]) -> None:
    while node is not None and id(node) not in kept:
        kept[id(node)] = node
        node = node.parent
