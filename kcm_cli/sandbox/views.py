"""Views for simulated kubelets and the scheduler, which read more fields than controllers do.

Both share one informer per kind, so that each change of a pod is decoded once.
"""

import msgspec

from kcm_cli.api import core
from kcm_cli.api.core import (
    Affinity,
    Container,
    ContainerStatus,
    Named,
    Node,
    NodeAffinity,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Service,
    Volume,
)
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, PartialObject, View


class Sleep(View, frozen=True, gc=False):
    seconds: int = 0


class ExecAction(View, frozen=True, gc=False):
    command: tuple[str, ...] = ()


class LifecycleHandler(View, frozen=True, gc=False):
    sleep: Sleep | None = None
    exec: ExecAction | None = None
    tcp_socket: Doc | None = None


class Lifecycle(View, frozen=True, gc=False):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None


class HTTPGet(View, frozen=True, gc=False):
    path: str = ""


class Probe(View, frozen=True, gc=False):
    """The handler of a probe, and its times."""

    exec: ExecAction | None = None
    http_get: HTTPGet | None = None
    timeout_seconds: int = 1
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3


class VolumeMount(View, frozen=True, gc=False):
    name: str = ""
    mount_path: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    sub_path: str = ""
    sub_path_expr: str = ""


class ExitCodes(View, frozen=True, gc=False):
    operator: str = ""
    values: tuple[int, ...] = ()


class RestartRule(View, frozen=True, gc=False):
    action: str = ""
    exit_codes: ExitCodes | None = None


class Sysctl(View, frozen=True, gc=False):
    name: str = ""


class SecurityContext(View, frozen=True, gc=False):
    """The security context of a pod, or of a container, which has the first four fields only."""

    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    read_only_root_filesystem: bool | None = None
    fs_group: int | None = None
    supplemental_groups: tuple[int, ...] = ()
    sysctls: tuple[Sysctl, ...] = ()


class ResizePolicy(View, frozen=True, gc=False):
    resource_name: str = ""
    restart_policy: str = ""


class FieldRef(View, frozen=True, gc=False):
    field_path: str = ""


class KeyRef(View, frozen=True, gc=False):
    """A key of a ConfigMap or Secret in the pod's namespace; without a key the whole object."""

    name: str = ""
    key: str = ""
    optional: bool | None = None


class ResourceFieldRef(View, frozen=True, gc=False):
    """A reference such as ``limits.cpu`` to a container's resources; without a name the container itself."""

    container_name: str = ""
    resource: str = ""
    divisor: str = ""


class FileKeyRef(View, frozen=True, gc=False):
    """A variable from a file in an emptyDir."""

    volume_name: str = ""
    path: str = ""
    key: str = ""
    optional: bool | None = None


class EnvSource(View, frozen=True, gc=False):
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    file_key_ref: FileKeyRef | None = None


class EnvVar(View, frozen=True, gc=False):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class EnvFrom(View, frozen=True, gc=False):
    prefix: str = ""
    config_map_ref: KeyRef | None = None
    secret_ref: KeyRef | None = None


class SimulatedContainer(Container, frozen=True, gc=False):
    image: str = ""
    image_pull_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    lifecycle: Lifecycle | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    startup_probe: Probe | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    working_dir: str = ""
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    security_context: SecurityContext | None = None
    resize_policy: tuple[ResizePolicy, ...] = ()
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class PreferredSchedulingTerm(View, frozen=True, gc=False):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class FullNodeAffinity(NodeAffinity, frozen=True, gc=False):
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(core.PodAffinityTerm, frozen=True, gc=False):
    label_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(core.WeightedPodAffinityTerm, frozen=True, gc=False):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(core.PodAffinity, frozen=True, gc=False):
    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class FullAffinity(Affinity, frozen=True, gc=False):
    node_affinity: FullNodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(View, frozen=True, gc=False):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ReadinessGate(View, frozen=True, gc=False):
    condition_type: str = ""


class ImageSource(View, frozen=True, gc=False):
    reference: str = ""
    pull_policy: str = ""


class KeyToPath(View, frozen=True, gc=False):
    key: str = ""
    path: str = ""


class ConfigMapSource(View, frozen=True, gc=False):
    """The ConfigMap of a volume, or of a source of a projected one."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class SecretSource(ConfigMapSource, frozen=True, gc=False):
    """``secret_name`` is that of a volume; sources of projected ones have ``name``."""

    secret_name: str = ""


class DownwardFile(View, frozen=True, gc=False):
    path: str = ""
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None


class DownwardSource(View, frozen=True, gc=False):
    items: tuple[DownwardFile, ...] = ()


class TokenSource(View, frozen=True, gc=False):
    audience: str = ""
    expiration_seconds: int | None = None
    path: str = ""


class Projection(View, frozen=True, gc=False):
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: TokenSource | None = None


class ProjectedSource(View, frozen=True, gc=False):
    sources: tuple[Projection, ...] = ()


class HostPath(View, frozen=True, gc=False):
    path: str = ""
    type: str | None = None


class RbdSource(View, frozen=True, gc=False):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class SimulatedVolume(Volume, frozen=True, gc=False):
    image: ImageSource | None = None
    empty_dir: Doc | None = None
    host_path: HostPath | None = None
    rbd: RbdSource | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    projected: ProjectedSource | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")


class PodOs(View, frozen=True, gc=False):
    name: str = ""


class HostAlias(View, frozen=True, gc=False):
    ip: str = ""
    hostnames: tuple[str, ...] = ()


class DNSOption(View, frozen=True, gc=False):
    name: str = ""
    value: str | None = None


class DNSConfig(View, frozen=True, gc=False):
    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[DNSOption, ...] = ()


class SimulatedPodSpec(PodSpec, frozen=True, gc=False):
    containers: tuple[SimulatedContainer, ...] = ()
    init_containers: tuple[SimulatedContainer, ...] = ()
    ephemeral_containers: tuple[SimulatedContainer, ...] = ()
    image_pull_secrets: tuple[Named, ...] = ()
    security_context: SecurityContext | None = None
    volumes: tuple[SimulatedVolume, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    scheduler_name: str = ""
    hostname: str = ""
    hostname_override: str | None = None
    host_aliases: tuple[HostAlias, ...] = ()
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    os: PodOs | None = None
    dns_policy: str = msgspec.field(default="", name="dnsPolicy")
    dns_config: DNSConfig | None = msgspec.field(default=None, name="dnsConfig")
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    enable_service_links: bool | None = None
    node_selector: dict[str, str] | None = None
    affinity: FullAffinity | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    preemption_policy: str | None = None


class SimulatedPodStatus(PodStatus, frozen=True, gc=False):
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str] | None = None
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class SimulatedPod(Pod, frozen=True, gc=False, kw_only=True):
    spec: SimulatedPodSpec = msgspec.field(default_factory=SimulatedPodSpec)
    status: SimulatedPodStatus = msgspec.field(default_factory=SimulatedPodStatus)


class ContainerImage(View, frozen=True, gc=False):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


def containers_of(pod: SimulatedPod) -> tuple[SimulatedContainer, ...]:
    """All containers, in the order in which a kubelet handles them."""
    return (*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers)


class SimulatedNodeStatus(NodeStatus, frozen=True, gc=False):
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class SimulatedNode(Node, frozen=True, gc=False, kw_only=True):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: SimulatedNodeStatus = msgspec.field(default_factory=SimulatedNodeStatus)


class NodeLease(Object, frozen=True, gc=False, kw_only=True):
    """A Lease in kube-node-lease, which is edited as a document."""


PODS = Resource(GVR("", "v1", "pods"), "Pod", SimulatedPod)
POD_METADATA = Resource(GVR("", "v1", "pods"), "Pod", PartialObject)
"""For writes of whose response only the resourceVersion is used."""

NODES = Resource(GVR("", "v1", "nodes"), "Node", SimulatedNode, namespaced=False)
NODE_LEASES = Resource(GVR("coordination.k8s.io", "v1", "leases"), "Lease", NodeLease, keeps_raw=True)


class Keyed(Object, frozen=True, gc=False, kw_only=True):
    """A ConfigMap or Secret, with its keys."""

    data: dict[str, object] | None = None
    binary_data: dict[str, object] | None = None


SERVICES = Resource(GVR("", "v1", "services"), "Service", Service)
CONFIG_MAP_KEYS = Resource(GVR("", "v1", "configmaps"), "ConfigMap", Keyed)
SECRET_KEYS = Resource(GVR("", "v1", "secrets"), "Secret", Keyed)
