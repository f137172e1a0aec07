"""Observes the twin's store and records what occurs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import msgspec

from kcm_cli.api.core import Condition, Running
from kcm_cli.api.discovery import SERVICE_NAME, Endpoint, EndpointSlice
from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.intstr import IntOrString
from kcm_cli.machinery.meta import PartialObject, View, controller_of
from kcm_cli.plan.answer import Object
from kcm_cli.plan.kinds import kind_of_owner
from kcm_cli.plan.twin.writes import ACTING
from kcm_cli.planning.replicas import replicas_of
from kcm_cli.sandbox.apiserver.store import Event, Store

PODS, NODES = GVR("", "v1", "pods"), GVR("", "v1", "nodes")
NAMESPACES = GVR("", "v1", "namespaces")
REPLICA_SETS = GVR("apps", "v1", "replicasets")
DEPLOYMENTS = GVR("apps", "v1", "deployments")
STATEFUL_SETS = GVR("apps", "v1", "statefulsets")
DAEMON_SETS = GVR("apps", "v1", "daemonsets")
JOBS = GVR("batch", "v1", "jobs")
AUTOSCALERS = GVR("autoscaling", "v2", "horizontalpodautoscalers")
OWNERS = {
    "Deployment": DEPLOYMENTS,
    "StatefulSet": STATEFUL_SETS,
    "DaemonSet": DAEMON_SETS,
    "Job": JOBS,
    "ReplicaSet": REPLICA_SETS,
    "ReplicationController": GVR("", "v1", "replicationcontrollers"),
}
"""The kinds that own pods."""
_ABOVE = {("apps/v1", "ReplicaSet"): REPLICA_SETS, ("batch/v1", "Job"): JOBS}
OWNED = frozenset(kind for _, kind in _ABOVE)
"""The kinds that a workload of another kind makes for its pods."""
SLICES = GVR("discovery.k8s.io", "v1", "endpointslices")
PREEMPTED = "preempted"
_SCHEDULER = "kube-scheduler"
_TERMINAL, _ENDED = ("Failed", "Succeeded"), "it had ended"


class Waiting(View, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class State(View, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None


class Container(View, frozen=True, gc=False):
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: State | None = None


class RollingUpdate(View, frozen=True, gc=False):
    """Of a Deployment or a StatefulSet."""

    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None
    partition: int | None = None


class Strategy(View, frozen=True, gc=False):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class Spec(View, frozen=True, gc=False):
    node_name: str = ""
    scheduler_name: str = ""
    replicas: int | None = None
    unschedulable: bool = False
    paused: bool = False
    strategy: Strategy = Strategy()
    update_strategy: Strategy = Strategy()


class Status(View, frozen=True, gc=False):
    """The status of all observed kinds."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    desired_replicas: int = 0
    last_scale_time: str | None = None
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[Container, ...] = ()
    container_statuses: tuple[Container, ...] = ()


def is_ready(endpoint: Endpoint) -> bool:
    """Whether an endpoint is ready; one that does not say so is."""
    return endpoint.conditions.ready is not False


class Seen(PartialObject, frozen=True, gc=False, kw_only=True):
    """The fields of an object that are observed."""

    spec: Spec = Spec()
    status: Status = Status()

    def condition(self, type_: str) -> Condition:
        return next((one for one in self.status.conditions if one.type == type_), _NONE)

    @property
    def phase(self) -> str:
        return self.status.phase

    @property
    def waits(self) -> str:
        """What a pod's container waits for, or fails to become; empty if nothing is wrong."""
        status = self.status
        for one in (*status.init_container_statuses, *status.container_statuses):
            waiting = one.state.waiting if one.state is not None else None
            if waiting is not None and waiting.reason not in _USUAL:
                return f"{_PULLS.get(waiting.reason, 'wait')}: {waiting.reason} ({_about(one, waiting)})"
        ready = self.condition("Ready").status
        runs = any(one.state and one.state.running for one in status.container_statuses)
        return "run and do not get Ready" if ready == "False" and runs and self.phase == "Running" else ""

    @property
    def restarts(self) -> int:
        return sum(one.restart_count for one in self.status.container_statuses)


def endpoints_of(data: bytes) -> EndpointSlice:
    """A slice; an empty one for what cannot be decoded."""
    return codec.decode_or_none(data, EndpointSlice) or _NO_SLICE


def ready_of(one: EndpointSlice) -> int:
    """The number of ready endpoints."""
    return sum(map(is_ready, one.members))


_NO_SLICE = EndpointSlice()
_ROLLED = frozenset(("Deployment", "StatefulSet", "DaemonSet"))
_USUAL = frozenset(("", "ContainerCreating", "PodInitializing"))
_PULLS = dict.fromkeys(("ErrImagePull", "ImagePullBackOff", "InvalidImageName"), "cannot pull their image")
_CONFIG = "CreateContainerConfigError"
_NONE = Condition()
_EMPTY = Seen()


def _about(container: Container, waiting: Waiting) -> str:
    """What a waiting container's reason is about."""
    return waiting.message if waiting.reason == _CONFIG and waiting.message else container.image


def seen(data: bytes) -> Seen:
    """Decode an object; an empty one if it cannot be decoded."""
    return codec.decode_or_none(data, Seen) or _EMPTY


class Occurrence(msgspec.Struct, frozen=True):
    """Something that occurred once, ``at_s`` seconds after the change. what, about, detail: see ``answer.Happening``.
    cause: the client whose request it was."""

    at_s: float
    what: str
    about: Object
    detail: str
    cause: str


class Observer:
    """Records occurrences. ``since_s``: the twin's time of the change."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._found: list[Occurrence] = []
        self._roots: dict[str, Object] = {}
        self._pods: dict[str, Object] = {}
        self.since_s = 0.0
        self.restarts: Counter[Object] = Counter()
        self.ready: dict[Object, list[tuple[float, int]]] = {}
        """When the number of Ready pods of a workload changed, and by how much."""
        self.endpoints: dict[tuple[Object, str], list[tuple[float, int]]] = {}
        """The same for the ready endpoints of a Service, by the type of their addresses."""
        self.least: dict[Object, int] = {}
        """The smallest number of replicas that a workload was to have."""
        for gvr, look in (
            (PODS, self._pod),
            (NODES, self._node),
            (NAMESPACES, self._namespace),
            (DEPLOYMENTS, self._deployment),
            (STATEFUL_SETS, self._stateful_set),
            (DAEMON_SETS, self._daemon_set),
            (JOBS, self._job),
            (AUTOSCALERS, self._autoscaler),
            (SLICES, self._slice),
            (REPLICA_SETS, lambda event: self._owner_deleted("ReplicaSet", event)),
            (JOBS, lambda event: self._owner_deleted("Job", event)),
        ):
            store.subscribe(gvr, look)

    def note(self, what: str, about: Object, detail: str = "", at: float | None = None) -> None:
        """Record an occurrence. at: the twin's time of it; now by default."""
        self._found.append(Occurrence(self._now() if at is None else at, what, about, detail, ACTING.get()))

    def occurred(self, preemptors: Mapping[str, str]) -> list[Occurrence]:
        """All occurrences since the change, in order. preemptors: the uid of the pod that preempted another one, by
        namespace/name of this."""
        found: list[Occurrence] = []
        last: dict[Object, int] = {}
        for one in self._found:
            at_s = round(one.at_s - self.since_s, 1)
            if at_s < 0:
                continue
            if one.what == PREEMPTED:
                by = self._pods.get(preemptors.get(one.detail, ""))
                one = msgspec.structs.replace(one, detail=f"by {by}" if by is not None else "")
            if one.what == "complete" and one.about.kind in _ROLLED:
                last[one.about] = len(found)  # only the last one: between two steps of a rollout all is well, too
            found.append(msgspec.structs.replace(one, at_s=at_s))
        return [one for n, one in enumerate(found) if one.what != "complete" or last.get(one.about, n) == n]

    def root(self, obj: Seen, kind: str) -> Object:
        """The workload that an object belongs to: what controls a pod, the Deployment of a ReplicaSet, the CronJob of a
        Job. Other objects are workloads themselves, whoever made them."""
        found = Object(kind, obj.namespace, obj.name)
        ref = controller_of(obj) if kind == "Pod" or kind in OWNED else None
        while ref is not None:
            known = self._roots.get(ref.uid)
            if known is not None:
                return known
            found = Object(kind_of_owner(ref), obj.namespace, ref.name)
            gvr = _ABOVE.get((ref.api_version, ref.kind))
            stored = self._store.get(gvr, obj.namespace, ref.name) if gvr is not None else None
            above = controller_of(seen(stored.data)) if stored is not None else None
            if above is None:
                self._roots[ref.uid] = found
            elif stored is not None:
                self._roots[ref.uid] = Object(kind_of_owner(above), obj.namespace, above.name)
            ref = above
        return found

    def _owner_deleted(self, kind: str, event: Event) -> None:
        """Remember the workload of a deleted owner, which its pods may outlive."""
        if event.type == "DELETED":
            gone = seen(event.stored.data)
            self._roots.setdefault(gone.uid, self.root(gone, kind))

    # -- kinds

    def _pod(self, event: Event) -> None:
        new = seen(event.stored.data)
        about = self.root(new, "Pod")
        self._pods[new.uid] = about
        old = seen(event.previous.data) if event.previous is not None else _EMPTY
        change = -serves(new) if event.type == "DELETED" else serves(new) - serves(old)
        if change:
            self.ready.setdefault(about, []).append((self._now(), change))
        if event.type == "DELETED":
            self.note("gone", about)
            return
        if event.previous is None:
            self.note("created", about)
        if new.deleting and not old.deleting:
            if ACTING.get() == _SCHEDULER:
                self.note(PREEMPTED, about, new.key)
            else:
                self.note("terminating", about, _ENDED if new.phase in _TERMINAL else "")
        scheduled = new.condition("PodScheduled")
        if scheduled.status == "False" and scheduled.message != old.condition("PodScheduled").message:
            self.note("pending", about, scheduled.message)
        ready, was = new.condition("Ready").status, old.condition("Ready").status
        if ready == "True" and was != "True":
            self.note("ready", about)
        elif was == "True" and ready != "True" and not new.deleting and new.phase == "Running":
            self.note("unready", about)
        if new.phase != old.phase and new.phase in _TERMINAL and not new.deleting:
            self.note(new.phase.lower(), about, new.status.reason)
        if event.previous is not None and new.restarts > old.restarts:
            self.restarts[about] += new.restarts - old.restarts

    def _slice(self, event: Event) -> None:
        """Count the ready endpoints of a Service."""
        new = endpoints_of(event.stored.data)
        before = ready_of(endpoints_of(event.previous.data)) if event.previous is not None else 0
        change = -ready_of(new) if event.type == "DELETED" else ready_of(new) - before
        name = new.labels.get(SERVICE_NAME, "")
        if change and name:
            place = Object("Service", new.namespace, name), new.address_type
            self.endpoints.setdefault(place, []).append((self._now(), change))

    def _node(self, event: Event) -> None:
        new = seen(event.stored.data)
        about = Object("Node", "", event.stored.name)
        if event.type == "DELETED":
            self.note("node", about, "removed")
            return
        if event.previous is None:
            self.note("node", about, "added")
            return
        old = seen(event.previous.data)
        now, was = new.condition("Ready").status, old.condition("Ready").status
        if now != was:
            self.note("node", about, "Ready" if now == "True" else "NotReady")
        if new.spec.unschedulable and not old.spec.unschedulable:
            self.note("node", about, "cordoned")

    def _namespace(self, event: Event) -> None:
        about = Object("Namespace", "", event.stored.name)
        if event.type == "DELETED":
            self.note("namespace", about, "gone")
        elif event.previous is not None and seen(event.stored.data).phase != seen(event.previous.data).phase:
            self.note("namespace", about, seen(event.stored.data).phase)

    def _deployment(self, event: Event) -> None:
        for old, new, about in self._change("Deployment", event):
            self._resized(about, new)
            reason, before = new.condition("Progressing").reason, old.condition("Progressing").reason
            if reason == "ProgressDeadlineExceeded" and before != reason:
                self.note("stuck", about, new.condition("Progressing").message)
            failure = new.condition("ReplicaFailure")
            if failure.status == "True" and failure.message != old.condition("ReplicaFailure").message:
                self.note("refused", about, failure.message)
            self._completed(deployment_done, old, new, about)

    def _stateful_set(self, event: Event) -> None:
        for old, new, about in self._change("StatefulSet", event):
            self._resized(about, new)
            self._completed(stateful_set_done, old, new, about)

    def _daemon_set(self, event: Event) -> None:
        for old, new, about in self._change("DaemonSet", event):
            self._completed(daemon_set_done, old, new, about)

    def _resized(self, about: Object, new: Seen) -> None:
        self.least[about] = min(self.least.get(about, replicas_of(new)), replicas_of(new))

    def _completed(self, done: Callable[[Seen], bool], old: Seen, new: Seen, about: Object) -> None:
        """Record the end of a rollout, unless the workload is being deleted."""
        if done(new) and not done(old) and not new.deleting:
            self.note("complete", about, _partly(new) if about.kind == "StatefulSet" else "")

    def _job(self, event: Event) -> None:
        new = seen(event.stored.data)
        about = self.root(new, "Job")
        if event.previous is None:
            if about.kind == "CronJob":
                self.note("begun", about)
            return
        for old, changed, _ in self._change("Job", event):
            for type_, what in (("Complete", "complete"), ("Failed", "job-failed")):
                if changed.condition(type_).status == "True" and old.condition(type_).status != "True":
                    self.note(what, about, changed.condition(type_).message if what == "job-failed" else "")

    def _autoscaler(self, event: Event) -> None:
        for old, new, about in self._change("HorizontalPodAutoscaler", event):
            moved = new.status.last_scale_time != old.status.last_scale_time
            if moved and new.status.desired_replicas:
                self.note("scaled", about, f"from {new.status.current_replicas} to {new.status.desired_replicas}")

    def _change(self, kind: str, event: Event) -> Iterator[tuple[Seen, Seen, Object]]:
        if event.type == "MODIFIED" and event.previous is not None:
            about = Object(kind, event.stored.namespace, event.stored.name)
            yield seen(event.previous.data), seen(event.stored.data), about


# -- whether workloads are as they should be


def deployment_done(obj: Seen) -> bool:
    """Whether all replicas have the latest template and are available, and no others are left."""
    status = obj.status
    return status.observed_generation >= obj.metadata.generation and (
        status.updated_replicas == status.replicas == status.available_replicas == replicas_of(obj)
    )


def stateful_set_done(obj: Seen) -> bool:
    """Whether all replicas are ready and, except those below the partition, have the latest template."""
    status = obj.status
    updates = obj.spec.update_strategy.type != "OnDelete" and status.update_revision != status.current_revision
    return (
        status.observed_generation >= obj.metadata.generation
        and status.ready_replicas == status.replicas == replicas_of(obj)
        and (not updates or status.updated_replicas >= replicas_of(obj) - partition(obj))
    )


def partition(obj: Seen) -> int:
    """The ordinal from which a StatefulSet updates its replicas; at most their number."""
    rolling = obj.spec.update_strategy.rolling_update
    return min((rolling.partition or 0) if rolling is not None else 0, replicas_of(obj))


def _partly(obj: Seen) -> str:
    """How much of a StatefulSet has the latest template, if not all has by intention."""
    status = obj.status
    if status.update_revision == status.current_revision or status.updated_replicas >= replicas_of(obj):
        return ""
    why = "they are updated on deletion" if obj.spec.update_strategy.type == "OnDelete" else "by its partition"
    return f"{status.updated_replicas} of {replicas_of(obj)} replicas updated, {why}"


def serves(pod: Seen) -> bool:
    """Whether a pod is Ready and stays."""
    return pod.condition("Ready").status == "True" and not pod.deleting


def daemon_set_done(obj: Seen) -> bool:
    """Whether every eligible node has an available pod with the latest template."""
    status = obj.status
    return status.observed_generation >= obj.metadata.generation and (
        status.updated_number_scheduled == status.number_available == status.desired_number_scheduled
    )
