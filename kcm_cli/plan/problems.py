"""What is wrong at the end of a run, and what was too little for a while."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.plan.answer import Object
from kcm_cli.plan.applying import template_of
from kcm_cli.plan.formatting import clock, counted, span
from kcm_cli.plan.observe import (
    AUTOSCALERS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    OWNERS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Observer,
    Seen,
    daemon_set_done,
    deployment_done,
    seen,
    stateful_set_done,
)
from kcm_cli.plan.refusals import Refusal, by_quota
from kcm_cli.plan.twin.twin import Twin
from kcm_cli.planning.replicas import replicas_of
from kcm_cli.planning.rollout import fenceposts
from kcm_cli.sandbox.apiserver.store import Store

Key = tuple[GVR, str, str]
LONG_S = 60.0
"""For how long replicas may be missing before that is a problem."""
_RESTLESS = 3
"""How many times its replicas a workload may replace them in the last part of the time, if it is to come to rest."""
_LAST_PART = 0.5


class Problems:
    """Finds the problems of one run. initial: the objects of the snapshot. horizon_s: from the change to the end."""

    def __init__(self, twin: Twin, observer: Observer, initial: Mapping[Key, bytes], horizon_s: float) -> None:
        self._twin = twin
        self._initial = initial
        self._store: Store = twin.store
        self._observer = observer
        self._horizon_s = horizon_s
        self._silent = {
            one.name for one in self._store.list(NODES) if seen(one.data).condition("Ready").status == "Unknown"
        }
        self._mounts: dict[tuple[str, str], str] = {}
        self._denied: dict[Object, str] = {}
        """Why pods of workloads are rejected at creation, by the last Event."""
        self._waiting: dict[Object, Counter[str]] = {}
        """Why pods of workloads are not ready, except for scheduling."""
        self._pending: dict[Object, Counter[str]] = {}
        self._ready: Counter[Object] = Counter()
        self._read_events()
        for stored in self._store.list(PODS):
            self._read_pod(seen(stored.data))

    def all(self) -> Iterator[Refusal]:
        """All problems; of one object and kind, one."""
        found = [*self._of_pods(), *self._of_workloads()]
        yield from found
        known = {one.about for one in found}
        yield from self._of_quotas()
        yield from self._of_others(known)
        yield from self._too_few(known)
        learned = self._twin.learned
        for image, why in sorted(learned.refused.items()):
            yield Refusal("image", Object("Image", "", image), f"its pods cannot start: {why}")
        for key, why in sorted(learned.hopeless.items()):
            namespace, kind, name = key.split("/", 2)
            text = f"new pods are taken to fare as those that it has: {why}"
            yield Refusal("stuck", self._workload(Object(kind, namespace, name)), text)

    # -- reading

    def _read_events(self) -> None:
        for event in self._twin.written.events.values():
            about = Object(event.kind, event.namespace, event.name)
            if event.reason == "FailedCreate":
                self._denied[self._workload(about)] = _why_denied(event.message)
            elif event.reason in ("FailedMount", "FailedAttachVolume") and event.kind == "Pod":
                self._mounts[event.namespace, event.name] = event.message

    def _workload(self, about: Object) -> Object:
        """The workload that an object of an Event belongs to."""
        gvr = OWNERS.get(about.kind)
        stored = self._store.get(gvr, about.namespace, about.name) if gvr is not None else None
        return self._observer.root(seen(stored.data), about.kind) if stored is not None else about

    def _read_pod(self, pod: Seen) -> None:
        about = self._observer.root(pod, "Pod")
        deleted = pod.deleting
        if pod.condition("Ready").status == "True" and not deleted:
            self._ready[about] += 1
        node = pod.spec.node_name
        if node in self._silent:
            stays = "stay Terminating" if deleted else "are"
            self._waiting.setdefault(about, Counter())[f"{stays} on {node}, whose kubelet is silent"] += 1
            return
        if deleted or pod.phase not in ("Pending", "Running", ""):
            return
        scheduled = pod.condition("PodScheduled")
        if not node and pod.phase in ("Pending", "") and scheduled.status == "False":
            self._pending.setdefault(about, Counter())[scheduled.message] += 1
            return
        why = pod.waits
        if not why and pod.phase == "Pending" and node:
            mount = self._mounts.get((pod.namespace, pod.name))
            why = f"cannot start: {mount}" if mount else ""
        if why:
            self._waiting.setdefault(about, Counter())[why] += 1

    # -- pods

    def _of_pods(self) -> Iterator[Refusal]:
        for about, messages in sorted(self._pending.items()):
            count = messages.total()
            shown = "; ".join(message for message, _ in messages.most_common(2))
            yield Refusal(
                "pending", about, f"{counted(count, 'pod')} {'is' if count == 1 else 'are'} Pending: {shown}", (count,)
            )

    def _reasons(self, about: Object) -> str:
        """Why pods of a workload are missing or not ready, as the end of a sentence."""
        parts = [f"{count} of its pods {why}" for why, count in sorted(self._waiting.get(about, Counter()).items())]
        if pending := self._pending.get(about):
            message = pending.most_common(1)[0][0]
            parts.append(f"{pending.total()} of its pods {'is' if pending.total() == 1 else 'are'} Pending: {message}")
        if denied := self._denied.get(about):
            parts.append(f"pods are refused: {denied}")
        return f"; {', '.join(parts)}" if parts else ""

    # -- workloads

    def _of_workloads(self) -> Iterator[Refusal]:
        kinds: tuple[tuple[GVR, str, Callable[[Seen], tuple[str, tuple[float, ...]] | None]], ...] = (
            (DEPLOYMENTS, "Deployment", _deployment),
            (STATEFUL_SETS, "StatefulSet", _stateful_set),
            (DAEMON_SETS, "DaemonSet", _daemon_set),
            (REPLICA_SETS, "ReplicaSet", _bare),
            (OWNERS["ReplicationController"], "ReplicationController", _bare),
        )
        for gvr, kind, look in kinds:
            for stored in self._store.list(gvr):
                obj = seen(stored.data)
                about, root = Object(kind, stored.namespace, stored.name), self._observer.root(obj, kind)
                if obj.deleting or (root != about and root.kind in OWNERS):
                    continue
                if found := look(obj):
                    yield Refusal("stuck", about, f"{found[0]}{self._reasons(root)}", found[1])
        for stored in self._store.list(JOBS):
            condition = seen(stored.data).condition("Failed")
            if condition.status == "True":
                yield Refusal("failed", Object("Job", stored.namespace, stored.name), condition.message)
        yield from self._of_namespaces()
        yield from self._of_autoscalers()

    def _of_namespaces(self) -> Iterator[Refusal]:
        for stored in self._store.list(NAMESPACES):
            obj = seen(stored.data)
            if obj.deleting:
                held = "; ".join(one.message for one in obj.status.conditions if one.status == "True" and one.message)
                text = f"it is still Terminating{held and ': '}{held}"
                yield Refusal("stuck", Object("Namespace", "", stored.name), text)

    def _of_autoscalers(self) -> Iterator[Refusal]:
        for stored in self._store.list(AUTOSCALERS):
            obj = seen(stored.data)
            for type_, rank in (("AbleToScale", 2.0), ("ScalingActive", 1.0)):
                condition = obj.condition(type_)
                if condition.status == "False" and condition.reason != "ScalingDisabled":
                    about = Object("HorizontalPodAutoscaler", stored.namespace, stored.name)
                    text = f"it does not scale: {condition.reason}: {condition.message}"
                    yield Refusal("stuck", about, text, (rank,))
                    break

    def _of_others(self, known: set[Object]) -> Iterator[Refusal]:
        """Pods that wait, and pods that are refused, of what is no such workload: Jobs, bare pods."""
        for about in sorted((self._waiting.keys() | self._denied.keys()) - known):
            if about.kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController"):
                continue  # it has what it is to have
            job = self._store.get(JOBS, about.namespace, about.name) if about.kind == "Job" else None
            if about.kind == "Job" and (job is None or seen(job.data).condition("Complete").status == "True"):
                continue
            if about not in self._waiting and about.kind != "Job":
                continue
            text = self._reasons(about).removeprefix("; ")
            if about.kind == "Pod":
                text = text.removeprefix("1 of its pods ").replace("cannot pull their image", "cannot pull its image")
            yield Refusal("stuck", about, text, (self._waiting.get(about, Counter()).total(),))

    def _of_quotas(self) -> Iterator[Refusal]:
        for about, why in sorted(self._denied.items()):
            if not by_quota(why):
                continue
            missing = self._missing(about)
            if missing:
                yield Refusal("quota", about, f"{counted(missing, 'pod')} missing: {why}", (missing,))

    def _missing(self, about: Object) -> int:
        """The number of pods that a workload lacks at the end; 1 if that is not known."""
        gvr = OWNERS.get(about.kind)
        stored = self._store.get(gvr, about.namespace, about.name) if gvr is not None else None
        if stored is None:
            return 0 if gvr is not None else 1
        obj = seen(stored.data)
        status = obj.status
        match about.kind:
            case "Job":
                return int(obj.condition("Complete").status != "True")
            case "DaemonSet":
                return max(0, status.desired_number_scheduled - status.updated_number_scheduled)
            case "Deployment":
                return max(0, replicas_of(obj) - min(status.replicas, status.updated_replicas))
            case _:
                return max(0, replicas_of(obj) - status.replicas)

    # -- for a while

    def _too_few(self, known: set[Object]) -> Iterator[Refusal]:
        """Workloads with too few Ready pods for long, and workloads whose pods are replaced again and again."""
        made: Counter[Object] = Counter()
        start_s = self._horizon_s * (1 - _LAST_PART)
        for one in self._observer.occurred({}):
            if one.what == "created" and one.at_s >= start_s:
                made[one.about] += 1
        for about in sorted(self._observer.ready.keys() | made.keys()):
            gvr = OWNERS.get(about.kind)
            stored = self._store.get(gvr, about.namespace, about.name) if gvr is not None else None
            if stored is None or about.kind in ("Job", "DaemonSet"):
                continue
            obj = seen(stored.data)
            if obj.deleting:
                continue
            if made[about] > _RESTLESS * max(1, replicas_of(obj)):
                within = span(round(self._horizon_s - start_s))
                text = f"it does not come to rest: {counted(made[about], 'pod')} created in the last {within}"
                yield Refusal("stuck", about, f"{text}{self._reasons(about)}", (made[about],))
            elif about not in known:
                yield from self._short(about, obj)

    def _short(self, about: Object, obj: Seen) -> Iterator[Refusal]:
        """The longest time with fewer Ready pods than a rollout may leave."""
        key = OWNERS[about.kind], about.namespace, about.name
        before, stored = self._initial.get(key), self._store.get(*key)
        if before is None or stored is None:
            return
        least = min(replicas_of(seen(before)), replicas_of(obj), self._observer.least.get(about, replicas_of(obj)))
        changed = template_of(codec.decode_doc(before)) != template_of(stored.doc)
        floor = least - _tolerated(about.kind, obj, least, changed=changed)
        spell = _longest_below(self._observer, about, self._ready[about], floor, self._horizon_s)
        if spell is None or spell[1] - spell[0] < LONG_S:
            return
        begin_s, end_s, lowest = spell
        text = f"only {lowest} of {least} replicas are Ready for {span(round(end_s - begin_s))}"
        yield Refusal(
            "unavailable", about, f"{text} ({clock(begin_s)} to {clock(end_s)})", ((end_s - begin_s) // LONG_S, -lowest)
        )


def _longest_below(
    observer: Observer, about: Object, last: int, floor: int, horizon_s: float
) -> tuple[float, float, int] | None:
    """(begin, end, lowest number) of the longest time with less than ``floor`` Ready pods, in seconds after the
    change. ``last``: their number at the end."""
    steps = observer.ready.get(about, [])
    count = last - sum(change for _, change in steps)
    began, lowest = (-math.inf, count) if count < floor else (None, count)
    longest: tuple[float, float, int] | None = None
    for at, change in [*steps, (observer.since_s + horizon_s, 0)]:
        ends = change == 0
        count += change
        if began is not None and (count >= floor or ends):
            spell = max(0.0, began - observer.since_s), max(0.0, at - observer.since_s), lowest
            if longest is None or spell[1] - spell[0] > longest[1] - longest[0]:
                longest = spell
            began = None
        elif count < floor:
            if began is None:
                began, lowest = at, count
            lowest = min(lowest, count)
    return longest


def _tolerated(kind: str, obj: Seen, least: int, *, changed: bool) -> int:
    """How many replicas may be missing, during a rollout if the template was ``changed``."""
    strategy = obj.spec.strategy
    if kind != "Deployment":
        return int(kind == "StatefulSet" and changed)
    if strategy.type == "Recreate":
        return least if changed else 0
    rolling = strategy.rolling_update
    try:
        return fenceposts(rolling.max_surge, rolling.max_unavailable, least)[1] if rolling is not None else 0
    except FormatError:
        return 0


def _why_denied(message: str) -> str:
    """The reason in the message of a FailedCreate Event, without the name of one of many pods."""
    _, forbidden, why = message.partition(" is forbidden: ")
    return why if forbidden else message.removeprefix("Error creating: ")


# -- whether a workload is done: (text, what is missing), or None


def _deployment(obj: Seen) -> tuple[str, tuple[float, ...]] | None:
    if deployment_done(obj):
        return None
    status = obj.status
    text = f"{status.updated_replicas} of {replicas_of(obj)} replicas updated, {status.available_replicas} available"
    late = obj.condition("Progressing").reason == "ProgressDeadlineExceeded"
    text += ", its progress deadline is exceeded" if late else ""
    text += ", it is paused" if obj.spec.paused else ""
    missing = replicas_of(obj) - status.updated_replicas, replicas_of(obj) - status.available_replicas
    return text, (*(max(0, one) for one in missing), late)


def _stateful_set(obj: Seen) -> tuple[str, tuple[float, ...]] | None:
    if stateful_set_done(obj):
        return None
    status = obj.status
    updates = status.update_revision != status.current_revision
    updated = f", {status.updated_replicas} updated" if updates else ""
    missing = replicas_of(obj) - status.ready_replicas, replicas_of(obj) - status.updated_replicas if updates else 0
    return f"{status.ready_replicas} of {replicas_of(obj)} replicas ready{updated}", tuple(
        max(0, one) for one in missing
    )


def _daemon_set(obj: Seen) -> tuple[str, tuple[float, ...]] | None:
    if daemon_set_done(obj):
        return None
    status = obj.status
    nodes, updated, available = (
        status.desired_number_scheduled,
        status.updated_number_scheduled,
        status.number_available,
    )
    missing = max(0, nodes - updated), max(0, nodes - available)
    return f"{updated} updated and {available} available, of {nodes} nodes", missing


def _bare(obj: Seen) -> tuple[str, tuple[float, ...]] | None:
    status = obj.status
    missing = replicas_of(obj) - status.ready_replicas
    return (f"{status.ready_replicas} of {replicas_of(obj)} replicas ready", (missing,)) if missing > 0 else None
