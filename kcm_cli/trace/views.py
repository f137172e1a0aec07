"""The fields of objects and Events that an observer reads. No value of a Secret, a ConfigMap or of the environment of a
container is among them: what is not declared here is never decoded.

upstream: none
"""

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, OwnerReference, View


class Manager(View, frozen=True, gc=False):
    """metav1.ManagedFieldsEntry without its fields."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str | None = None


class Meta(View, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    managed_fields: tuple[Manager, ...] = ()


class Condition(View, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class Taint(View, frozen=True, gc=False):
    key: str = ""
    effect: str = ""


class Waiting(View, frozen=True, gc=False):
    reason: str = ""


class Terminated(View, frozen=True, gc=False):
    """Without its message, which is a text of the program."""

    reason: str = ""
    exit_code: int = 0


class State(View, frozen=True, gc=False):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class Container(View, frozen=True, gc=False):
    name: str = ""
    image: str = ""
    state: State | None = None
    last_state: State | None = None


class ScaleTarget(View, frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class Spec(View, frozen=True, gc=False):
    node_name: str = ""
    replicas: int | None = None
    ttl_seconds_after_finished: int | None = None
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    scale_target_ref: ScaleTarget | None = None


class Status(View, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[Container, ...] = ()
    container_statuses: tuple[Container, ...] = ()


class Seen(Object, frozen=True, gc=False, kw_only=True):
    """An object of any kind."""

    metadata: Meta = msgspec.field(default_factory=Meta)  # type: ignore[assignment]  # other fields, same names
    spec: Spec = Spec()
    status: Status = Status()


class Involved(View, frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Source(View, frozen=True, gc=False):
    component: str = ""
    host: str = ""


class Series(View, frozen=True, gc=False):
    count: int = 0
    last_observed_time: str | None = None


class CoreV1Event(Object, frozen=True, gc=False, kw_only=True):
    """core/v1 Event."""

    metadata: Meta = msgspec.field(default_factory=Meta)  # type: ignore[assignment]  # other fields, same names
    involved_object: Involved = Involved()
    related: Involved | None = None
    reason: str = ""
    message: str = ""
    type: str = ""
    source: Source = Source()
    reporting_component: str = ""
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int = 0
    series: Series | None = None


class EventsV1Event(Object, frozen=True, gc=False, kw_only=True):
    """events.k8s.io/v1 Event: what it has under other names than core/v1's."""

    metadata: Meta = msgspec.field(default_factory=Meta)  # type: ignore[assignment]  # other fields, same names
    regarding: Involved = Involved()
    related: Involved | None = None
    reason: str = ""
    note: str = ""
    type: str = ""
    reporting_controller: str = ""
    event_time: str | None = None
    series: Series | None = None

    @property
    def as_core_v1(self) -> CoreV1Event:
        """The same as core/v1 has it."""
        return CoreV1Event(
            metadata=self.metadata,
            involved_object=self.regarding,
            related=self.related,
            reason=self.reason,
            message=self.note,
            type=self.type,
            reporting_component=self.reporting_controller,
            event_time=self.event_time,
            series=self.series,
        )


def _kind(plural: str, kind: str, group: str = "", version: str = "v1", *, namespaced: bool = True) -> Resource[Seen]:
    return Resource(GVR(group, version, plural), kind, Seen, namespaced)


EVENTS = Resource(GVR("", "v1", "events"), "Event", CoreV1Event)
KINDS = (
    _kind("pods", "Pod"),
    _kind("replicasets", "ReplicaSet", "apps"),
    _kind("deployments", "Deployment", "apps"),
    _kind("statefulsets", "StatefulSet", "apps"),
    _kind("daemonsets", "DaemonSet", "apps"),
    _kind("replicationcontrollers", "ReplicationController"),
    _kind("jobs", "Job", "batch"),
    _kind("cronjobs", "CronJob", "batch"),
    _kind("horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling", "v2"),
    _kind("poddisruptionbudgets", "PodDisruptionBudget", "policy"),
    _kind("nodes", "Node", namespaced=False),
    _kind("namespaces", "Namespace", namespaced=False),
)
"""What is read. Of other kinds there are Events and owner references, and of a target its metadata."""
