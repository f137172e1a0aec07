"""The decisions about pods that ReplicaSets and ReplicationControllers share.

upstream: pkg/controller/replicaset/replica_set.go#manageReplicas, replica_set_utils.go#calculateStatus
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from kcm_cli.api.apps import ReplicaSet, ReplicaSetStatus
from kcm_cli.api.core import Condition, Pod, ReplicationController, ReplicationControllerStatus
from kcm_cli.api.resource import Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import NO_LABELS, Object, controller_of
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning import pods as pod_rules
from kcm_cli.planning.actions import Delete, EventRef, Expect, Mode, Plan, Remark, Stage, ref_to
from kcm_cli.planning.conditions import find, removed
from kcm_cli.planning.pod_control import create_pod, delete_pod
from kcm_cli.planning.pod_template import UnselectedTemplate, check_selected, labels_of, pod_from_template

BURST = 500
"""The maximum number of pods that one sync creates or deletes."""

FEW_REJECTIONS = 5
MAXIMUM_PAUSE_S = 60.0
REJECTIONS_COUNT = timedelta(minutes=10)
"""How long a pod that a node has rejected makes a difference."""

REPLICA_FAILURE = "ReplicaFailure"

Status = ReplicaSetStatus | ReplicationControllerStatus


class _Spec(Protocol):
    @property
    def replicas(self) -> int | None: ...


class Scaled(Protocol):
    """A Deployment, ReplicaSet, StatefulSet or ReplicationController."""

    @property
    def spec(self) -> _Spec: ...


def replicas_of(obj: Scaled) -> int:
    """The desired number of pods: spec.replicas, 1 by default."""
    replicas = obj.spec.replicas
    return 1 if replicas is None else replicas


class ReplicaOwner(msgspec.Struct, frozen=True):
    """A ReplicaSet or ReplicationController, with the fields that the rules need."""

    resource: Resource[Any]
    obj: Object
    selector: Selector
    replicas: int
    min_ready_s: int
    template: Doc
    status: Status

    @classmethod
    def of(cls, resource: Resource[Any], obj: ReplicaSet | ReplicationController, selector: Selector) -> "ReplicaOwner":
        spec = obj.spec
        return cls(resource, obj, selector, replicas_of(obj), spec.min_ready_seconds, spec.template or {}, obj.status)

    @property
    def ref(self) -> EventRef:
        return ref_to(self.resource, self.obj)

    @property
    def template_labels(self) -> Mapping[str, str]:
        return labels_of(self.template)


def matters(before: Pod, now: Pod) -> bool:
    """Whether an update may change what a sync does, where labels and owner are the same. The binding to a node does
    not, nor an address or a note: pods are counted by these fields, and where they are ranked the number is wrong, so
    that a sync is under way or follows."""
    if pod_rules.is_terminal(before) or pod_rules.is_terminal(now) or before.deleting != now.deleting:
        return True
    if pod_rules.ready_condition(before) != pod_rules.ready_condition(now):
        return True
    return bool(before.status.container_statuses) != bool(now.status.container_statuses)  # see pause_s


def plan(
    owner: ReplicaOwner, active: Sequence[Pod], related: Sequence[Pod], now: datetime, *, costs: bool = True
) -> Plan:
    """Create missing pods, or delete surplus pods in the order of their rank; nothing if the number is right.

    Raises UnselectedTemplate.

    costs: whether the annotation with a pod's deletion cost counts.
    """
    diff = len(active) - owner.replicas
    if diff < 0:
        fields = {"replicaSet": kobj(owner.obj), "need": owner.replicas, "creating": min(-diff, BURST)}
        return (_creations(owner, min(-diff, BURST), Remark("Too few replicas", fields)),)
    if diff > 0:
        count = min(diff, BURST)
        ranked = active if count == len(active) else pod_rules.rank_for_deletion(active, related, now, costs=costs)
        fields = {"replicaSet": kobj(owner.obj), "need": owner.replicas, "deleting": count}
        return (_deletions(owner, ranked[:count], Remark("Too many replicas", fields)),)
    return ()


def pause_s(owner: ReplicaOwner, active: Iterable[Pod], ended: Iterable[Pod], missing: int, now: datetime) -> float:
    """The seconds until missing pods may be created: 0, unless nodes reject them again and again.

    A node may lack what the scheduler does not know of (a device, a sysctl), and rejects each new pod at once. Upstream
    creates more than a thousand in a minute. Here the pause doubles with each round of rejections: as many as are
    missing, or were created in one second. Rejections before the latest pod that a node has accepted do not count.
    """
    since = format_time(now - REJECTIONS_COUNT)
    until = format_time(now + timedelta(seconds=MAXIMUM_PAUSE_S))  # the API server's clock may be ahead, within reason
    created = [pod.metadata.creation_timestamp or "" for pod in ended if _is_rejected(owner, pod)]
    recent = [time for time in created if since <= time <= until]
    if len(recent) < FEW_REJECTIONS:
        return 0.0
    accepted = max(
        (pod.metadata.creation_timestamp or "" for pod in active if pod.status.container_statuses), default=""
    )
    counts = Counter(time for time in recent if time > accepted)
    rounds = counts.total() // max(FEW_REJECTIONS, missing, *counts.values())
    if rounds == 0:
        return 0.0
    pause = min(2.0 ** (rounds - 1), MAXIMUM_PAUSE_S)
    age = max(0.0, (now - parse_time(max(counts))).total_seconds())
    return max(0.0, pause - age)


def _is_rejected(owner: ReplicaOwner, pod: Pod) -> bool:
    ref = controller_of(pod)
    return ref is not None and ref.uid == owner.obj.uid and pod_rules.is_rejected(pod)


def age_ratios(active: Sequence[Pod], planned: Plan, now: datetime) -> list[int]:
    """Of the ready pods that are to be deleted: the ages in whole multiples of the youngest ready pod's."""
    chosen = {action.uid for stage in planned for action in stage.actions if isinstance(action, Delete)}
    if not chosen or len(chosen) == len(active):
        return []
    ages = {pod.uid: _age_ms(pod, now) for pod in active if pod_rules.is_ready(pod)}
    youngest = min(ages.values(), default=0)
    return [age // youngest for uid, age in ages.items() if uid in chosen and youngest > 0]


def _age_ms(pod: Pod, now: datetime) -> int:
    created = pod.metadata.creation_timestamp
    return 0 if created is None else int((now - parse_time(created)).total_seconds() * 1000)


def _creations(owner: ReplicaOwner, count: int, remark: Remark) -> Stage:
    if not owner.template_labels:
        raise UnselectedTemplate("no labels")  # as upstream
    check_selected(owner.template, owner.selector)
    body = codec.encode(pod_from_template(owner.template, owner.resource, owner.obj))
    create = create_pod(owner.ref, owner.obj.namespace, body, "too few replicas")
    return Stage(
        (create,) * count, Mode.SLOW_START, Expect(owner.obj.key, owner.obj.uid, creations=count), remark=remark
    )


def _deletions(owner: ReplicaOwner, chosen: Sequence[Pod], remark: Remark) -> Stage:
    deletes = tuple(delete_pod(owner.ref, pod, "too many replicas") for pod in chosen)
    keys = tuple(pod.key for pod in chosen)
    return Stage(deletes, Mode.PARALLEL, Expect(owner.obj.key, owner.obj.uid, deletions=keys), remark=remark)


def status(
    owner: ReplicaOwner,
    active: Sequence[Pod],
    terminating: int | None,
    error: Exception | None,
    now: datetime,
    *,
    observed: bool = True,
) -> Status:
    """The status that follows from the pods and from the outcome of the plan.

    active: pods that the selector matches. terminating: None where the kind does not report it. observed: whether the
    present generation could be acted on.
    """
    min_ready_s = owner.min_ready_s
    ready = [pod for pod in active if pod_rules.is_ready(pod)]
    available = ready if min_ready_s <= 0 else [p for p in ready if pod_rules.is_available(p, min_ready_s, now)]
    return msgspec.structs.replace(
        owner.status,
        replicas=len(active),
        fully_labeled_replicas=_fully_labeled(owner, active),
        ready_replicas=len(ready),
        available_replicas=len(available),
        terminating_replicas=terminating,
        observed_generation=owner.obj.metadata.generation if observed else owner.status.observed_generation,
        conditions=_conditions(owner, len(active), error, now) if observed else owner.status.conditions,
    )


def _fully_labeled(owner: ReplicaOwner, active: Sequence[Pod]) -> int:
    """The number of pods with all labels of the template, mostly without a look at each."""
    if owner.selector.implies(owner.template_labels):
        return len(active)
    labels = owner.template_labels.items()
    return sum(labels <= (pod.metadata.labels or NO_LABELS).items() for pod in active)


def _conditions(owner: ReplicaOwner, active: int, error: Exception | None, now: datetime) -> tuple[Condition, ...]:
    current = owner.status.conditions
    if error is None:
        return removed(current, REPLICA_FAILURE)
    if find(current, REPLICA_FAILURE) is not None:
        return current
    reason, message = "", str(error)
    if active < owner.replicas:
        reason = "FailedCreate"
    elif active > owner.replicas:
        reason, message = "FailedDelete", f"unable to delete pods: {error}"
    return (*current, Condition(REPLICA_FAILURE, "True", reason, message, last_transition_time=format_time(now)))


def next_check_s(owner: ReplicaOwner, status: Status, active: Sequence[Pod], now: datetime) -> float | None:
    """Seconds until a ready pod may become available; None if none will."""
    if status.ready_replicas == status.available_replicas:
        return None
    return pod_rules.next_check_s(active, owner.min_ready_s, now)
