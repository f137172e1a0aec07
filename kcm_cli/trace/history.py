"""Turns versions of objects and Events into steps, as an observer sees them. Pure.

A version says what is, not who made it so: that is inferred, from the newest managed field, a condition or an Event.

upstream: none
"""

import re
from collections import deque
from collections.abc import Container, Iterator, Mapping
from typing import Any

import msgspec

from kcm_cli.api.short_names import kind_of_reference
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.recent import Bounded
from kcm_cli.machinery.times import seconds_of
from kcm_cli.trace import steps
from kcm_cli.trace.steps import (
    AUDIT,
    BOUND,
    CHANGED,
    CONDITION,
    CREATED,
    DELETED,
    ENDED,
    EVENT,
    EVICTED,
    GUESS,
    IS,
    MANAGED,
    MARKED,
    OBJECT,
    REFUSED,
    SAYS,
    SCALED,
    TAINTED,
    Ref,
    Step,
    canonical,
)
from kcm_cli.trace.views import Condition, CoreV1Event, Involved, Manager, Seen

MOST = 100_000
"""Steps that are kept, and objects of which something is known."""
_LONGEST = 300
_SOON_S = 2.0
"""A version is seen so long after the full second of its write, at most, if nothing is slow."""
_TARGET = "DisruptionTarget"
_DISRUPTORS = {
    "PreemptionByScheduler": "kube-scheduler",
    "DeletionByTaintManager": "taint-eviction-controller",
    "EvictionByEvictionAPI": "the eviction API",
    "DeletionByPodGC": "pod-garbage-collector-controller",
    "TerminationByKubelet": "kubelet",
    "DeletionByDeviceTaintManager": "device-taint-eviction-controller",
}
"""Who sets the condition DisruptionTarget with a reason."""
_STANDING = {
    ("Deployment", "ReplicaFailure", "True"),
    ("Deployment", "Progressing", "False"),
    ("ReplicaSet", "ReplicaFailure", "True"),
    ("ReplicationController", "ReplicaFailure", "True"),
    ("Pod", "PodScheduled", "False"),
    ("Job", "Failed", "True"),
    ("Job", "Complete", "True"),
    ("Job", "Suspended", "True"),
    ("HorizontalPodAutoscaler", "ScalingActive", "False"),
    ("HorizontalPodAutoscaler", "AbleToScale", "False"),
    ("PodDisruptionBudget", "DisruptionAllowed", "False"),
    ("Node", "Ready", "False"),
    ("Node", "Ready", "Unknown"),
    ("Node", "MemoryPressure", "True"),
    ("Node", "DiskPressure", "True"),
    ("Node", "PIDPressure", "True"),
    ("Namespace", "NamespaceDeletionContentFailure", "True"),
    ("Namespace", "NamespaceContentRemaining", "True"),
    ("Namespace", "NamespaceFinalizersRemaining", "True"),
}
"""Conditions that a trace shows."""
_ENDINGS = frozenset((("Job", "Failed"), ("Job", "Complete")))
_QUIET_WAITS = frozenset(("", "ContainerCreating", "PodInitializing"))
_ROUTINE = frozenset(("Pulling", "Pulled", "Created", "Started", "LeaderElection", "NodeHasSufficientMemory"))
"""Events that say what always happens."""
_CREATED = re.compile(r"(?:Created (?:pod|job):? |[Cc]reate (?:Pod|Claim) )(\S{1,253})")
LABELS = "its labels"
_DELETED = re.compile(r"(?:Deleted (?:pod|job):? |[Dd]elete Pod )(\S{1,253})")
_SCALED = re.compile(r"Scaled (?:up|down) replica set (\S{1,253}) from (\d{1,10}) to (\d{1,10})", re.ASCII)
_ASSIGNED = re.compile(r"Successfully assigned \S{1,512} to (\S{1,253})")
_SIZE = re.compile(r"New size: (\d{1,10}); reason: (.{0,300})", re.DOTALL | re.ASCII)
_PREEMPTOR = re.compile(r"Preempted by pod (\S{1,64}) on node ")
_MADE = {"CronJob": "Job"}
"""What owners of a kind create, other than Pods."""


def _bounded() -> Bounded[Any, Any]:
    return Bounded(MOST)


class Relations(msgspec.Struct):
    """Which object belongs to which, as it was seen.

    owners: by (kind, key). said: the same, by Events of the owner. nodes: of pods, by key. targets: of autoscalers, by
    key. named: objects by uid. expiring: Jobs by uid, with the seconds from end to deletion.

    Each has MOST entries at most; the oldest make room.
    """

    owners: Bounded[tuple[str, str], Ref] = msgspec.field(default_factory=_bounded)
    said: Bounded[tuple[str, str], Ref] = msgspec.field(default_factory=_bounded)
    nodes: Bounded[str, str] = msgspec.field(default_factory=_bounded)
    targets: Bounded[str, Ref] = msgspec.field(default_factory=_bounded)
    named: Bounded[str, Ref] = msgspec.field(default_factory=_bounded)
    expiring: Bounded[str, int] = msgspec.field(default_factory=_bounded)

    def place(self, pod: Ref, node: str) -> None:
        """A pod is on a node."""
        self.nodes[pod.key] = node

    def take(self, about: Ref, obj: Seen) -> None:
        """Learn what a version says."""
        self.named[about.uid] = about
        namespace = obj.metadata.namespace
        owner = controller_of(obj) or next(iter(obj.metadata.owner_references), None)
        if owner is not None and owner.uid:
            key = owner.name if owner.kind == "Node" or not namespace else f"{namespace}/{owner.name}"
            self.owners[about.place] = Ref(kind_of_reference(owner.api_version, owner.kind), key, owner.uid)
        if about.kind == "Pod" and obj.spec.node_name:
            self.place(about, obj.spec.node_name)
        if obj.spec.ttl_seconds_after_finished is not None:
            self.expiring[about.uid] = obj.spec.ttl_seconds_after_finished
        target = obj.spec.scale_target_ref
        if target is not None and target.kind:
            self.targets[about.key] = Ref(
                kind_of_reference(target.api_version, target.kind), f"{namespace}/{target.name}"
            )


class Write(msgspec.Struct, frozen=True):
    """A write of the audit log. verb: of its step; "" for one of a status."""

    actor: str
    verb: str = ""


class History:
    """The steps of what was seen so far. forgotten: how many made room for newer ones."""

    @property
    def total(self) -> int:
        """How many steps there ever were."""
        return self.forgotten + len(self.steps)

    def __init__(self) -> None:
        self.steps: deque[Step] = deque(maxlen=MOST)
        self.relations = Relations()
        self.forgotten = 0
        self._last: Bounded[str, Seen] = _bounded()
        self._counts: Bounded[str, int] = _bounded()
        """How often each Event had happened."""
        self._mentioned: Bounded[str, Ref] = _bounded()
        self._ended: Bounded[tuple[str, str], float] = _bounded()
        """When the last object of a name was gone."""

    def add(self, step: Step) -> None:
        """Keep a step."""
        self.forgotten += len(self.steps) == MOST
        self.steps.append(step)

    def version(self, kind: str, obj: Seen, at: float, *, listed: bool = False, write: Write | None = None) -> None:
        """A version of an object appeared at a time. listed: it was there before it was looked for. write: what it
        is the answer to, if that is known."""
        meta = obj.metadata
        if not meta.uid:
            return
        about, old = Ref(kind, obj.key, meta.uid), self._last.get(meta.uid)
        if old is not None and 0 < obj.version < old.version:  # of a write whose answer came after that to a later one
            if write is not None and write.verb:
                self.add(Step(at, write.verb, about, write.actor, AUDIT))
            return
        self._last[meta.uid] = obj
        self.relations.take(about, obj)
        before, ended, is_new = old or _NOTHING, self._ended.get(about.place), old is None and write is None
        found = [
            *(_born(about, obj, at, ended, listed=listed) if is_new else ()),
            *_changed(about, before, obj, at, first=old is None),
            *(_marked(about, obj, at, listed=listed) if meta.deletion_timestamp and not _deleting(before) else ()),
        ]
        for step in found if write is None else _made(found, about, at, write, (old, obj)):
            self.add(step)

    def gone(self, kind: str, obj: Seen, at: float) -> None:
        """An object was deleted."""
        about = Ref(kind, obj.key, obj.uid)
        self.relations.take(about, obj)
        before = self._last.pop(obj.uid, None)
        if before is not None and not _deleting(before) and not _deleting(obj):
            for step in _disrupted(about, obj, at):
                self.add(step)
        self.add(Step(at, DELETED, about))
        self._ended[about.place] = at

    def event(self, event: CoreV1Event, at: float) -> None:
        """An Event happened, or a newer version of one was seen."""
        involved = event.involved_object
        about = _ref(involved)
        component = event.reporting_component or event.source.component
        actor = canonical(component)
        if actor == "kubelet" and event.source.host:
            actor = f"{steps.KUBELET}{event.source.host}"
        if not about.key or event.reason in _ROUTINE:
            return
        series = event.series
        count = max(event.count, series.count if series is not None else 0, 1)
        place = _place(event)
        before = self._counts.get(place, 0) if place else 0
        if count <= before:
            return
        if place:
            self._counts[place] = count
        times = (series.last_observed_time if series is not None else None, event.last_timestamp, event.event_time)
        found = [seconds_of(text) for text in (*times, event.first_timestamp, event.metadata.creation_timestamp)]
        moment = next((one for one in found if one is not None), at)
        text = f"{event.reason}: {_short(event.message)}"
        plain = Step(moment, SAYS, about, actor, EVENT, text, rough=moment == int(moment), count=count - before)
        if about.uid:
            self._mentioned[about.uid] = about
        for step in self._of_event(event, plain):
            self.add(step)
            if step.verb == CREATED and step.behind is not None:
                self.relations.said[step.about.place] = step.behind

    def absent(self, kinds: Container[str], at: float) -> None:
        """All objects of these kinds were listed: what Events are about and was not listed does not exist. Where
        another object of the name is there, it went before that was created. Events of a static pod have another uid
        than the pod that shows it, which its node owns."""
        named = ((self.relations.named.get(uid), obj) for uid, obj in self._last.items())
        there = {ref.place: obj for ref, obj in named if ref is not None}
        for about in tuple(self._mentioned.values()):
            if about.kind not in kinds or about.uid in self._last:
                continue
            other = there.get(about.place)
            if other is None:
                self.add(Step(at, DELETED, about, detail="it is not there any more", vague=True))
            elif (owner := controller_of(other)) is None or owner.kind != "Node":
                created = seconds_of(other.metadata.creation_timestamp)
                if created is not None:
                    self.add(Step(created, DELETED, about, detail="another one of its name is there", vague=True))

    def forget_event(self, event: CoreV1Event) -> None:
        """An Event expired."""
        self._counts.pop(_place(event), None)

    def _of_event(self, event: CoreV1Event, plain: Step) -> Iterator[Step]:
        """What an Event tells of its object, or of another one that its message names."""
        reason, message, about = event.reason, event.message, plain.about
        replace = msgspec.structs.replace
        if reason == "Scheduled" and (match := _ASSIGNED.match(message)):
            self.relations.place(about, match[1])
        made = _MADE.get(about.kind, "Pod")
        if reason == "SuccessfulCreate" and (match := _CREATED.match(message)) and "Claim" not in match[0]:
            yield _other(plain, made, match[1], CREATED, "")
        elif reason == "SuccessfulDelete" and (match := _DELETED.match(message)):
            yield _other(plain, made, match[1], DELETED, plain.detail)
        elif reason == "ScalingReplicaSet" and (match := _SCALED.match(message)):
            yield _other(plain, "ReplicaSet", match[1], SCALED, f"from {match[2]} to {match[3]}")
        elif reason == "SuccessfulRescale" and (match := _SIZE.match(message)):
            target = self.relations.targets.get(about.key)
            if target is not None:
                detail = f"to {match[1]}, as {_short(match[2])}"
                yield replace(plain, verb=SCALED, about=target, detail=detail, behind=about)
            yield plain
        elif reason == "Preempted":
            match = _PREEMPTOR.match(message)
            behind = self.relations.named.get(match[1]) if match else None
            if behind is None and event.related is not None and event.related.name:
                behind = _ref(event.related)
            yield replace(plain, verb=MARKED, behind=behind)
        elif reason.startswith(("FailedCreate", "FailedDelete")):
            yield replace(plain, verb=REFUSED, trouble=True, makes=reason.startswith("FailedCreate"))
        else:
            yield _simple(event, plain)


def _place(event: CoreV1Event) -> str:
    """What tells an Event from others. In the request that creates it, it has no uid yet, and with a generateName
    nothing does."""
    return event.key if event.metadata.name else event.metadata.uid


def _other(plain: Step, kind: str, name: str, verb: str, detail: str) -> Step:
    """The step of an object that the message of an Event names."""
    about = Ref(kind, f"{plain.key.partition('/')[0]}/{name}")
    return msgspec.structs.replace(plain, verb=verb, about=about, detail=detail, count=1, behind=plain.about)


def _simple(event: CoreV1Event, plain: Step) -> Step:
    if event.reason == "TaintManagerEviction" and event.message.startswith("Marking for deletion"):
        return msgspec.structs.replace(plain, verb=MARKED)
    if event.reason == "RemovingNode":  # the node lifecycle controller saw it go
        return msgspec.structs.replace(plain, verb=DELETED, actor="")
    if event.reason == "Evicted":
        return msgspec.structs.replace(plain, verb=EVICTED)
    if event.reason == "Scheduled":
        return msgspec.structs.replace(plain, verb=BOUND, settles=True)
    return msgspec.structs.replace(plain, trouble=event.type == "Warning")


_NOTHING = Seen()


def _deleting(obj: Seen) -> bool:
    return obj.metadata.deletion_timestamp is not None


_OF_SPEC = frozenset((CHANGED, SCALED, TAINTED))


def _made(
    found: list[Step], about: Ref, at: float, write: "Write", change: "tuple[Seen | None, Seen]"
) -> Iterator[Step]:
    """The steps of a version that is the answer to a write. What it shows for the first time may be the work of a
    writer in between, whose answer is not in the log: a spec is said to be changed by a writer only if it was changed
    once, and a state to be seen in the write."""
    old, new = change
    once = old is not None and new.metadata.generation <= old.metadata.generation + 1
    spec = [one for one in found if one.verb in _OF_SPEC and one.source != CONDITION]
    replace = msgspec.structs.replace
    if write.verb in (CREATED, DELETED, EVICTED) or (write.verb and not once):
        yield Step(at, write.verb, about, write.actor, AUDIT)
    elif write.verb:
        for one in spec:
            yield replace(one, at=at, actor=write.actor, source=AUDIT, rough=False)
    elif old is not None:
        for one in found:
            if one.verb == MARKED:
                yield one
            elif one not in spec and one.verb != BOUND:
                how = one.detail if one.verb == EVICTED else f"{one.detail}, in a write of {write.actor}"
                yield replace(one, at=at, actor=write.actor, source=AUDIT, rough=False, detail=how)


def _ref(involved: Involved) -> Ref:
    key = f"{involved.namespace}/{involved.name}" if involved.namespace and involved.kind != "Node" else involved.name
    kind = kind_of_reference(involved.api_version, involved.kind)
    return Ref(kind, key, "" if kind == "Node" else involved.uid)  # kubelets name nodes as uids


def _short(text: str) -> str:
    flat = " ".join(text[: 2 * _LONGEST].split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}..."


def _writers(obj: Seen) -> list[tuple[float, Manager]]:
    """Managers with the times of their last writes, the oldest first."""
    found = [(seconds_of(one.time), one) for one in obj.metadata.managed_fields if one.manager]
    return sorted(((at, one) for at, one in found if at is not None), key=lambda pair: pair[0])


def _born(about: Ref, obj: Seen, at: float, ended: float | None, *, listed: bool) -> Iterator[Step]:
    """ended: when another object of the name was gone. The full second of the creation may be before that, and the
    creation is not."""
    created = seconds_of(obj.metadata.creation_timestamp)
    moment = at if created is None or (ended is not None and created <= ended) else created
    writers = _writers(obj)
    scaler = _scaler(obj)
    owner = controller_of(obj)
    first = next((one.manager for when, one in writers if when <= moment + 1 and not one.subresource), "")
    actor = steps.CONTROLLER_OF.get(kind_of_reference(owner.api_version, owner.kind), "") if owner is not None else ""
    source = OBJECT if not (actor or first) else MANAGED
    yield Step(moment, CREATED, about, actor or first, source, rough=True)
    if listed:
        is_explained = bool(scaler)
        for when, one in writers:
            own = owner is None and one.manager in steps.MANAGERS and one.subresource != "scale"
            own = own or (about.kind == "Node" and one.manager == "kubelet")  # its labels and annotations
            if when > moment + 1 and one.subresource != "status" and not own:
                verb = SCALED if one.subresource == "scale" else CHANGED
                how = f"by {one.operation or 'Update'}{f' of {one.subresource}' if one.subresource else ''}, last"
                if obj.spec.taints:  # one of its writers did it
                    verb, how = TAINTED, f"{_taints(obj)}, {how}"
                yield Step(when, verb, about, one.manager, MANAGED, how, rough=True)
                is_explained = True
        if scaler:
            yield Step(moment, SCALED, about, scaler, MANAGED, "when is not recorded", rough=True, vague=True)
        if obj.metadata.generation > 1 and not is_explained:
            detail = f"its spec, generation {obj.metadata.generation}; who and when is not recorded"
            yield Step(moment, CHANGED, about, "", OBJECT, detail, rough=True, vague=True)


def _taints(node: Seen) -> str:
    return _short(", ".join(f"{one.key}:{one.effect}" for one in node.spec.taints))


def _changed(about: Ref, old: Seen, new: Seen, at: float, *, first: bool) -> Iterator[Step]:
    if not first:
        yield from _spec(about, old, new, at)
    if new.spec.node_name and not old.spec.node_name and not first:
        yield Step(at, BOUND, about, detail=f"to node {new.spec.node_name}", settles=True)
    elif first and new.spec.node_name and about.kind == "Pod":
        bound = next((one for one in new.status.conditions if one.type == "PodScheduled"), None)
        moment = seconds_of(bound.last_transition_time) if bound is not None and bound.status == "True" else None
        if moment is not None:
            yield Step(moment, BOUND, about, detail=f"to node {new.spec.node_name}", rough=True, settles=True)
    yield from _conditions(about, old, new, at)
    yield from _phase(about, old, new, at, first=first)


def _spec(about: Ref, old: Seen, new: Seen, at: float) -> Iterator[Step]:
    (actor, source), owner = _writer(old, new, at), controller_of(new)
    if about.kind == "Node" and (labels := _relabelled(old, new)):
        yield Step(at, CHANGED, about, actor, source, labels)
    if actor in steps.MANAGERS and owner is not None:
        actor = steps.CONTROLLER_OF.get(kind_of_reference(owner.api_version, owner.kind), actor)
    if new.spec.taints != old.spec.taints or new.spec.unschedulable != old.spec.unschedulable:
        was = {f"{one.key}:{one.effect}" for one in old.spec.taints}
        now = {f"{one.key}:{one.effect}" for one in new.spec.taints}
        changes = [*(f"+{one}" for one in sorted(now - was)), *(f"-{one}" for one in sorted(was - now))]
        yield Step(at, TAINTED, about, actor, source, _short(", ".join(changes) or "unschedulable"))
    elif new.spec.replicas != old.spec.replicas and new.spec.replicas is not None:
        yield Step(at, SCALED, about, actor, source, f"from {old.spec.replicas} to {new.spec.replicas}")
    elif new.metadata.generation != old.metadata.generation and not new.metadata.deletion_timestamp:
        yield Step(at, CHANGED, about, actor, source, f"its spec, generation {new.metadata.generation}")


def _relabelled(old: Seen, new: Seen) -> str:
    """Which labels are new or have another value, and which are gone; "" for none."""
    was, now = old.metadata.labels or {}, new.metadata.labels or {}
    if was == now:
        return ""
    changes = [f"+{key}={now[key]}" for key in sorted(now) if was.get(key) != now[key]]
    changes += [f"-{key}" for key in sorted(was) if key not in now]
    return _short(f"{LABELS}: {', '.join(changes)}")


def _writer(old: Seen, new: Seen, at: float) -> tuple[str, str]:
    """The manager of the newest entry that is new, and the source. That of the subresource scale has no time, and that
    of a second write in one second is no new one. Who takes a field away may have no entry at all: that it was the only
    one who wrote just then is a guess."""
    before, writers = set(old.metadata.managed_fields), _writers(new)
    fresh = [one for _, one in writers if one not in before and one.subresource != "status"]
    if fresh:
        return fresh[-1].manager, MANAGED
    if new.spec.replicas != old.spec.replicas and (scaler := _scaler(new)):
        return scaler, MANAGED
    just = {one.manager for when, one in writers if one.subresource != "status" and abs(at - when) <= _SOON_S}
    return (just.pop(), GUESS) if len(just) == 1 else ("", OBJECT)


def _scaler(obj: Seen) -> str:
    """Who wrote the subresource scale, at a time that is not recorded."""
    return next((one.manager for one in obj.metadata.managed_fields if one.subresource == "scale" and not one.time), "")


def _conditions(about: Ref, old: Seen, new: Seen, at: float) -> Iterator[Step]:
    before = {one.type: one for one in old.status.conditions}
    standing = {one.type for one in new.status.conditions if _is_trouble(about, one)}
    for one in new.status.conditions:
        was = before.get(one.type)
        if was is not None and (was.status, was.reason) == (one.status, one.reason):
            continue
        moment = seconds_of(one.last_transition_time)
        moment, rough = (at, False) if was is None and old is not _NOTHING or moment is None else (moment, True)
        text = f"{one.type}={one.status}" + _why(one)
        if (about.kind, one.type, one.status) in _STANDING:
            if (about.kind, one.type) in _ENDINGS:
                yield Step(moment, ENDED, about, "", CONDITION, text, rough=rough, trouble=one.type == "Failed")
            elif about.kind == "Node":
                yield Step(moment, TAINTED, about, "", CONDITION, text, rough=rough)
            else:
                yield Step(moment, IS, about, "", CONDITION, text, rough=rough, trouble=one.type in standing)
        elif _is_ready(about, one) or (was is not None and _is_trouble(about, was)):
            yield Step(moment, IS, about, "", CONDITION, text, rough=rough, settles=not standing)
    for kind, was in before.items():
        if _is_trouble(about, was) and not any(one.type == kind for one in new.status.conditions):
            yield Step(at, IS, about, "", CONDITION, f"{kind} is over", settles=not standing)


def _is_ready(about: Ref, condition: Condition) -> bool:
    return about.kind != "Node" and condition.type in ("Ready", "Available") and condition.status == "True"


def _is_trouble(about: Ref, condition: Condition) -> bool:
    """Whether a condition keeps an object from going on, for as long as it is there."""
    is_end = (about.kind, condition.type) in _ENDINGS or condition.type == "Suspended" or about.kind == "Node"
    return not is_end and (about.kind, condition.type, condition.status) in _STANDING


def _why(condition: Condition) -> str:
    message = _short(condition.message)
    return (f", {condition.reason}: {message}" if message else f", {condition.reason}") if condition.reason else ""


def _phase(about: Ref, old: Seen, new: Seen, at: float, *, first: bool) -> Iterator[Step]:
    if about.kind == "Pod" and new.status.phase in ("Failed", "Succeeded") and new.status.phase != old.status.phase:
        reason = f", {new.status.reason}: {_short(new.status.message)}" if new.status.reason else ""
        if first and (ended := _finished(new)) is not None:
            at = ended
        evicted = new.status.reason == "Evicted"
        actor = "kubelet" if evicted else ""
        yield Step(
            at, EVICTED if evicted else ENDED, about, actor, CONDITION if evicted else OBJECT, new.status.phase + reason
        )
    was = _waits(old)
    for name, text in _waits(new).items():
        if was.get(name) != text:
            yield Step(at, IS, about, detail=f"container {name} waits: {text}", trouble=True)


def _finished(pod: Seen) -> float | None:
    """When it was last known to change."""
    times = [seconds_of(one.last_transition_time) for one in pod.status.conditions]
    return max((one for one in times if one is not None), default=None)


def _waits(pod: Seen) -> Mapping[str, str]:
    found = {}
    for one in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = one.state.waiting if one.state is not None else None
        if waiting is not None and waiting.reason not in _QUIET_WAITS:
            ended = one.last_state.terminated if one.last_state is not None else None
            before = (
                f", it ended before: {_short(ended.reason)}, exit code {ended.exit_code}" if ended is not None else ""
            )
            found[one.name] = f"{waiting.reason} (image {_short(one.image)}{before})"
    return found


def _marked(about: Ref, obj: Seen, at: float, *, listed: bool) -> Iterator[Step]:
    due = seconds_of(obj.metadata.deletion_timestamp)
    rough = listed and due is not None
    if rough and due is not None:
        at = due - (obj.metadata.deletion_grace_period_seconds or 0)
    yield from _disrupted(about, obj, at)
    yield Step(at, MARKED, about, rough=rough)


def _disrupted(about: Ref, obj: Seen, at: float) -> Iterator[Step]:
    """Who set the condition that says that a pod is about to be ended."""
    for one in obj.status.conditions:
        if one.type == _TARGET and one.status == "True":
            actor = _DISRUPTORS.get(one.reason, "")
            if one.reason == "EvictionByEvictionAPI":
                actor = next((w.manager for _, w in reversed(_writers(obj)) if w.subresource == "eviction"), actor)
            yield Step(at, MARKED, about, actor, CONDITION, f"{one.reason}: {_short(one.message)}")
