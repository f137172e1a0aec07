"""Views of the apps group. Pod templates are opaque documents: compared, hashed and copied whole."""

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, View
from kcm_cli.machinery.raw_fields import RawField


class ReplicaSetSpec(View, frozen=True, gc=False):
    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: Doc = msgspec.field(default_factory=dict)


class ReplicaSetStatus(View, frozen=True, gc=False):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(Object, frozen=True, gc=False, kw_only=True):
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = msgspec.field(default_factory=ReplicaSetStatus)


class RollingUpdateDeployment(View, frozen=True, gc=False):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(View, frozen=True, gc=False):
    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(View, frozen=True, gc=False):
    replicas: int | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False
    selector: LabelSelector | None = None
    strategy: DeploymentStrategy = msgspec.field(default_factory=DeploymentStrategy)
    template: Doc = msgspec.field(default_factory=dict)


class DeploymentStatus(View, frozen=True, gc=False):
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class Deployment(Object, frozen=True, gc=False, kw_only=True):
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)


class RollingUpdateDaemonSet(View, frozen=True, gc=False):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DaemonSetUpdateStrategy(View, frozen=True, gc=False):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(View, frozen=True, gc=False):
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    update_strategy: DaemonSetUpdateStrategy = msgspec.field(default_factory=DaemonSetUpdateStrategy)
    template: Doc = msgspec.field(default_factory=dict)


class DaemonSetStatus(View, frozen=True, gc=False):
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None


class DaemonSet(Object, frozen=True, gc=False, kw_only=True):
    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = msgspec.field(default_factory=DaemonSetStatus)


class RollingUpdateStatefulSet(View, frozen=True, gc=False):
    partition: int | None = None
    max_unavailable: int | str | None = None


class StatefulSetUpdateStrategy(View, frozen=True, gc=False):
    type: str = ""
    rolling_update: RollingUpdateStatefulSet | None = None


class ClaimRetentionPolicy(View, frozen=True, gc=False):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetOrdinals(View, frozen=True, gc=False):
    start: int = 0


class StatefulSetSpec(View, frozen=True, gc=False):
    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = ""
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    update_strategy: StatefulSetUpdateStrategy = msgspec.field(default_factory=StatefulSetUpdateStrategy)
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None
    template: Doc = msgspec.field(default_factory=dict)
    volume_claim_templates: tuple[Doc, ...] = ()


class StatefulSetStatus(View, frozen=True, gc=False):
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    observed_generation: int = 0
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class StatefulSet(Object, frozen=True, gc=False, kw_only=True):
    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = msgspec.field(default_factory=StatefulSetStatus)


class ControllerRevision(Object, frozen=True, gc=False, kw_only=True):
    """``data`` is the snapshot document that its owner stored, an opaque patch."""

    revision: int = 0
    data: Doc | None = None


def _apps(plural: str) -> GVR:
    return GVR("apps", "v1", plural)


DEPLOYMENTS = Resource(_apps("deployments"), "Deployment", Deployment, keeps_raw=True)
REPLICA_SETS = Resource(_apps("replicasets"), "ReplicaSet", ReplicaSet, keeps_raw=True)
STATEFUL_SETS = Resource(_apps("statefulsets"), "StatefulSet", StatefulSet, keeps_raw=True)
DAEMON_SETS = Resource(_apps("daemonsets"), "DaemonSet", DaemonSet, keeps_raw=True)
CONTROLLER_REVISIONS = Resource(
    _apps("controllerrevisions"),
    "ControllerRevision",
    ControllerRevision,
    keeps_raw=True,
    raw_fields=(RawField(("data",), (2, 1)),),
)
