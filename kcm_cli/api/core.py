"""Views of the core group: the fields that controllers read, and nothing else.

Pods are decoded more often than everything else together, so their view has only fields that some controller reads. The
decoder skips environment, mounts, probes and the like.
"""

from functools import lru_cache
from typing import ClassVar

import msgspec
from msgspec.structs import force_setattr

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, View


class ObjectReference(View, frozen=True, gc=False):
    """core/v1 ObjectReference."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class Condition(View, frozen=True, gc=False):
    """A condition of a pod, node or similar: type, status, reason, message and times as text."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    last_heartbeat_time: str | None = None
    last_update_time: str | None = None
    observed_generation: int = 0


class ContainerPort(View, frozen=True, gc=False):
    SHARED: ClassVar[bool] = True

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ResourceRequirements(View, frozen=True, gc=False):
    """Requests and limits. Quantities are text."""

    SHARED: ClassVar[bool] = True

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(View, frozen=True, gc=False):
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class Toleration(View, frozen=True, gc=False):
    SHARED: ClassVar[bool] = True

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


_MOST_SHARED = 16
"""Longer lists are not kept for pods that may never come."""


@lru_cache(maxsize=64)
def _equal_one(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Return the equal tuple that was seen first."""
    return tolerations


class NodeSelectorRequirement(View, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True, gc=False):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(View, frozen=True, gc=False):
    """One of the terms must match, with all of its requirements."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(View, frozen=True, gc=False):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(View, frozen=True, gc=False):
    """The fields that name other namespaces."""

    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(View, frozen=True, gc=False):
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(View, frozen=True, gc=False):
    """PodAffinity and PodAntiAffinity."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(View, frozen=True, gc=False):
    """Node affinity, and the namespaces that pod (anti-)affinity names."""

    SHARED: ClassVar[bool] = True

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class ClaimName(View, frozen=True, gc=False):
    claim_name: str = ""
    read_only: bool = False


class EphemeralSource(View, frozen=True, gc=False):
    volume_claim_template: Doc | None = None


class FlexSource(View, frozen=True, gc=False):
    """FlexVolumeSource and FlexPersistentVolumeSource."""

    driver: str = ""
    fs_type: str = msgspec.field(default="", name="fsType")
    read_only: bool = False
    options: dict[str, str] | None = None


class Volume(View, frozen=True, gc=False):
    """A volume, with the sources that controllers read."""

    name: str = ""
    persistent_volume_claim: ClaimName | None = None
    ephemeral: EphemeralSource | None = None
    iscsi: Doc | None = None
    fc: Doc | None = None
    aws_elastic_block_store: Doc | None = None
    azure_disk: Doc | None = None
    azure_file: Doc | None = None
    cinder: Doc | None = None
    gce_persistent_disk: Doc | None = None
    portworx_volume: Doc | None = None
    vsphere_volume: Doc | None = None
    flex_volume: FlexSource | None = None


class PodResourceClaim(View, frozen=True, gc=False):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(View, frozen=True, gc=False):
    """The claim of an entry. Without a name, no claim is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(View, frozen=True, gc=False):
    """The request of the claim that provides a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""


class ExtendedResourceClaimStatus(View, frozen=True, gc=False):
    """The claim that the scheduler created for extended resources."""

    resource_claim_name: str = ""
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class SchedulingGroup(View, frozen=True, gc=False):
    pod_group_name: str | None = None


class Named(View, frozen=True, gc=False):
    name: str = ""


class PodSpec(View, frozen=True, gc=False):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    restart_policy: str = ""
    host_network: bool = False
    service_account_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: Affinity | None = None
    volumes: tuple[Volume, ...] = ()
    overhead: dict[str, str] | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: tuple[Named, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None

    def __post_init__(self) -> None:
        """Share equal tolerations. Nearly all pods have the same two, which take 600 of the 3,000 bytes of a pod."""
        if 0 < len(self.tolerations) <= _MOST_SHARED:
            force_setattr(self, "tolerations", _equal_one(self.tolerations))


class Terminated(View, frozen=True, gc=False):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class Waiting(View, frozen=True, gc=False):
    reason: str = ""


class Running(View, frozen=True, gc=False):
    started_at: str | None = None


class ContainerState(View, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(View, frozen=True, gc=False):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str] | None = None


class PodIP(View, frozen=True, gc=False):
    ip: str = ""


class PodStatus(View, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = msgspec.field(default=(), name="podIPs")
    host_ip: str = msgspec.field(default="", name="hostIP")
    start_time: str | None = None
    qos_class: str = ""
    observed_generation: int = 0
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    resources: ResourceRequirements | None = None


class Pod(Object, frozen=True, gc=False, kw_only=True):
    """A pod, with the fields that controllers read."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Taint(View, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(View, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = msgspec.field(default=(), name="podCIDRs")


class NodeAddress(View, frozen=True, gc=False):
    type: str = ""
    address: str = ""


class AttachedVolume(View, frozen=True, gc=False):
    name: str = ""
    device_path: str = ""


class NodeStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()
    allocatable: dict[str, str] | None = None
    capacity: dict[str, str] | None = None
    addresses: tuple[NodeAddress, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()


class Node(Object, frozen=True, gc=False, kw_only=True):
    """A node, with the fields that controllers read."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class NamespaceSpec(View, frozen=True, gc=False):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(View, frozen=True, gc=False):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Namespace(Object, frozen=True, gc=False, kw_only=True):
    """A namespace."""

    spec: NamespaceSpec = msgspec.field(default_factory=NamespaceSpec)
    status: NamespaceStatus = msgspec.field(default_factory=NamespaceStatus)


class ServiceAccount(Object, frozen=True, gc=False, kw_only=True):
    secrets: tuple[ObjectReference, ...] = ()


class Secret(Object, frozen=True, gc=False, kw_only=True):
    """The values of ``data`` are base64."""

    type: str = ""
    data: dict[str, str] | None = None


class ConfigMap(Object, frozen=True, gc=False, kw_only=True):
    data: dict[str, str] | None = None


class ServicePort(View, frozen=True, gc=False):
    name: str = ""
    protocol: str = "TCP"
    app_protocol: str | None = None
    port: int = 0
    target_port: int | str | None = None
    node_port: int = 0


class ServiceSpec(View, frozen=True, gc=False):
    type: str = ""
    selector: dict[str, str] | None = None
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ip_families: tuple[str, ...] = ()
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False
    traffic_distribution: str | None = None
    allocate_load_balancer_node_ports: bool | None = None


class Service(Object, frozen=True, gc=False, kw_only=True):
    """A Service, with the fields that controllers read."""

    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class PersistentVolumeClaimSpec(View, frozen=True, gc=False):
    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    selector: LabelSelector | None = None
    data_source: Doc | None = None


class ModifyVolumeStatus(View, frozen=True, gc=False):
    target_volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(View, frozen=True, gc=False):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, str] | None = None
    allocated_resources: dict[str, str] | None = None
    allocated_resource_statuses: dict[str, str] | None = None
    current_volume_attributes_class_name: str | None = None
    conditions: tuple[Condition, ...] = ()
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(Object, frozen=True, gc=False, kw_only=True):
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)


class ReplicationControllerSpec(View, frozen=True, gc=False):
    """``selector`` is a map of labels, unlike a ReplicaSet's."""

    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: dict[str, str] | None = None
    template: Doc | None = None


class ReplicationControllerStatus(View, frozen=True, gc=False):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicationController(Object, frozen=True, gc=False, kw_only=True):
    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)
    status: ReplicationControllerStatus = msgspec.field(default_factory=ReplicationControllerStatus)


class ScopeRequirement(View, frozen=True, gc=False):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(View, frozen=True, gc=False):
    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(View, frozen=True, gc=False):
    """A quota's limits. Quantities are text."""

    hard: dict[str, str] | None = None
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(View, frozen=True, gc=False):
    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class ResourceQuota(Object, frozen=True, gc=False, kw_only=True):
    spec: ResourceQuotaSpec = msgspec.field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = msgspec.field(default_factory=ResourceQuotaStatus)


class Event(Object, frozen=True, gc=False, kw_only=True):
    count: int = 0


def _core(plural: str) -> GVR:
    return GVR("", "v1", plural)


PODS = Resource(_core("pods"), "Pod", Pod)
NODES = Resource(_core("nodes"), "Node", Node, namespaced=False, keeps_raw=True)
NAMESPACES = Resource(_core("namespaces"), "Namespace", Namespace, namespaced=False, keeps_raw=True)
SERVICE_ACCOUNTS = Resource(_core("serviceaccounts"), "ServiceAccount", ServiceAccount, keeps_raw=True)
SECRETS = Resource(_core("secrets"), "Secret", Secret, keeps_raw=True)
CONFIG_MAPS = Resource(_core("configmaps"), "ConfigMap", ConfigMap, keeps_raw=True)
SERVICES = Resource(_core("services"), "Service", Service, keeps_raw=True)
REPLICATION_CONTROLLERS = Resource(
    _core("replicationcontrollers"), "ReplicationController", ReplicationController, keeps_raw=True
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    _core("persistentvolumeclaims"), "PersistentVolumeClaim", PersistentVolumeClaim, keeps_raw=True
)
RESOURCE_QUOTAS = Resource(_core("resourcequotas"), "ResourceQuota", ResourceQuota, keeps_raw=True)
EVENTS = Resource(_core("events"), "Event", Event)
