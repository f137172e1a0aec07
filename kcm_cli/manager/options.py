"""Every option of the manager in one tree, and the flags that come of it.

``ComponentConfig`` is what the configuration file and /configz hold (KubeControllerManagerConfiguration v1alpha1, in
the order of its fields); ``Options`` adds what only flags set.

upstream: cmd/kube-controller-manager/app/options, staging/src/k8s.io/kube-controller-manager/config/v1alpha1
"""

from dataclasses import dataclass
from functools import cache

from kcm_cli.component.auth_config import AuthenticationConfig, AuthorizationConfig
from kcm_cli.component.client_config import ServerAddressConfig
from kcm_cli.component.flagset import Flag, FlagSet
from kcm_cli.component.generic_config import (
    DeprecatedConfig,
    GenericConfig,
    KubeCloudSharedConfig,
    LeaderMigrationOptions,
    ManagerConfig,
)
from kcm_cli.component.kinds import BOOL, STRING, STRING_OR_BARE, VERSION
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.metrics_config import MetricsConfig
from kcm_cli.component.option_flags import flags_of
from kcm_cli.component.options import Binding, bind, group
from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.controllers.certificatesigningrequest_signing.config import CSRSigningConfig
from kcm_cli.controllers.cronjob.config import CronJobConfig
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.device_taint_eviction.config import DeviceTaintEvictionConfig
from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from kcm_cli.controllers.ephemeral_volume.config import EphemeralVolumeConfig
from kcm_cli.controllers.garbage_collector.config import GarbageCollectorConfig
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.config import LegacyTokenCleanerConfig
from kcm_cli.controllers.namespace.config import NamespaceConfig
from kcm_cli.controllers.node_ipam.config import NodeIPAMConfig
from kcm_cli.controllers.node_lifecycle.config import NodeLifecycleConfig
from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.controllers.pod_garbage_collector.config import PodGarbageCollectorConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.controllers.resourceclaim.config import ResourceClaimConfig
from kcm_cli.controllers.resourcequota.config import ResourceQuotaConfig
from kcm_cli.controllers.service_lb.config import ServiceConfig
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.controllers.ttl_after_finished.config import TTLAfterFinishedConfig
from kcm_cli.controllers.validatingadmissionpolicy_status.config import ValidatingAdmissionPolicyStatusConfig

SECTIONS = (
    "Debugging",
    "Leader-migration",
    "Generic",
    "Service-lb-controller",
    "Secure serving",
    "Authentication",
    "Authorization",
    "Persistentvolume-attach-detach-controller",
    "Certificatesigningrequest-signing-controller",
    "Deployment-controller",
    "Device-taint-eviction-controller",
    "Resourceclaim-controller",
    "Statefulset-controller",
    "Daemonset-controller",
    "Endpoints-controller",
    "Endpointslice-controller",
    "Endpointslice-mirroring-controller",
    "Ephemeral-volume-controller",
    "Garbage-collector-controller",
    "Horizontal-pod-autoscaler-controller",
    "Job-controller",
    "Cronjob-controller",
    "Legacy-serviceaccount-token-cleaner-controller",
    "Namespace-controller",
    "Node-ipam-controller",
    "Node-lifecycle-controller",
    "Persistentvolume-binder-controller",
    "Pod-garbage-collector-controller",
    "Replicaset-controller",
    "Replicationcontroller-controller",
    "Resourcequota-controller",
    "Serviceaccount-controller",
    "Ttl-after-finished-controller",
    "Validatingadmissionpolicy-status-controller",
    "Metrics",
    "Logs",
    "Misc",
    "Kcm",
    "Global",
)
"""The sections of the help, in order; within a section flags stand by name."""


@dataclass(frozen=True, slots=True)
class ComponentConfig:
    """KubeControllerManagerConfiguration: a field for each section, named as the controller's folder is."""

    generic: GenericConfig = group(GenericConfig, key="Generic")
    kube_cloud_shared: KubeCloudSharedConfig = group(KubeCloudSharedConfig, key="KubeCloudShared")
    persistentvolume_attach_detach: AttachDetachConfig = group(AttachDetachConfig, key="AttachDetachController")
    certificatesigningrequest_signing: CSRSigningConfig = group(CSRSigningConfig, key="CSRSigningController")
    daemonset: DaemonSetConfig = group(DaemonSetConfig, key="DaemonSetController")
    deployment: DeploymentConfig = group(DeploymentConfig, key="DeploymentController")
    statefulset: StatefulSetConfig = group(StatefulSetConfig, key="StatefulSetController")
    deprecated: DeprecatedConfig = group(DeprecatedConfig, key="DeprecatedController")
    endpoints: EndpointsConfig = group(EndpointsConfig, key="EndpointController")
    endpointslice: EndpointSliceConfig = group(EndpointSliceConfig, key="EndpointSliceController")
    endpointslice_mirroring: EndpointSliceMirroringConfig = group(
        EndpointSliceMirroringConfig, key="EndpointSliceMirroringController"
    )
    ephemeral_volume: EphemeralVolumeConfig = group(EphemeralVolumeConfig, key="EphemeralVolumeController")
    garbage_collector: GarbageCollectorConfig = group(GarbageCollectorConfig, key="GarbageCollectorController")
    horizontal_pod_autoscaler: HorizontalPodAutoscalerConfig = group(HorizontalPodAutoscalerConfig, key="HPAController")
    job: JobConfig = group(JobConfig, key="JobController")
    cronjob: CronJobConfig = group(CronJobConfig, key="CronJobController")
    legacy_serviceaccount_token_cleaner: LegacyTokenCleanerConfig = group(
        LegacyTokenCleanerConfig, key="LegacySATokenCleaner"
    )
    namespace: NamespaceConfig = group(NamespaceConfig, key="NamespaceController")
    node_ipam: NodeIPAMConfig = group(NodeIPAMConfig, key="NodeIPAMController")
    node_lifecycle: NodeLifecycleConfig = group(NodeLifecycleConfig, key="NodeLifecycleController")
    persistentvolume_binder: PersistentVolumeBinderConfig = group(
        PersistentVolumeBinderConfig, key="PersistentVolumeBinderController"
    )
    pod_garbage_collector: PodGarbageCollectorConfig = group(PodGarbageCollectorConfig, key="PodGCController")
    replicaset: ReplicaSetConfig = group(ReplicaSetConfig, key="ReplicaSetController")
    replicationcontroller: ReplicationControllerConfig = group(ReplicationControllerConfig, key="ReplicationController")
    resourcequota: ResourceQuotaConfig = group(ResourceQuotaConfig, key="ResourceQuotaController")
    serviceaccount_token: ServiceAccountTokenConfig = group(ServiceAccountTokenConfig, key="SAController")
    service_lb: ServiceConfig = group(ServiceConfig, key="ServiceController")
    ttl_after_finished: TTLAfterFinishedConfig = group(TTLAfterFinishedConfig, key="TTLAfterFinishedController")
    validatingadmissionpolicy_status: ValidatingAdmissionPolicyStatusConfig = group(
        ValidatingAdmissionPolicyStatusConfig, key="ValidatingAdmissionPolicyStatusController"
    )
    device_taint_eviction: DeviceTaintEvictionConfig = group(
        DeviceTaintEvictionConfig, key="DeviceTaintEvictionController"
    )
    resourceclaim: ResourceClaimConfig = group(ResourceClaimConfig, key="ResourceClaimController")


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that can be set from outside."""

    component: ComponentConfig = group(ComponentConfig)
    leader_migration: LeaderMigrationOptions = group(LeaderMigrationOptions)
    manager: ManagerConfig = group(ManagerConfig)
    serving: ServingConfig = group(ServingConfig)
    authentication: AuthenticationConfig = group(AuthenticationConfig)
    authorization: AuthorizationConfig = group(AuthorizationConfig)
    metrics: MetricsConfig = group(MetricsConfig)
    logs: LogsConfig = group(LogsConfig)
    server_address: ServerAddressConfig = group(ServerAddressConfig)


PROCESS_FLAGS = (
    Flag("help", BOOL, False, "Show this help.", "Global", shorthand="h"),
    Flag(
        "version",
        VERSION,
        "false",
        "Print the version and end; raw prints all of it, vX.Y.Z sets the version that is reported.",
        "Global",
    ),
    Flag(
        "config",
        STRING,
        "",
        "File with a KubeControllerManagerConfiguration (kubecontrollermanager.config.k8s.io/v1alpha1) in YAML or "
        "JSON. Flags go before it.",
        "Kcm",
    ),
    Flag("install-completion", BOOL, False, "Install completion for the present shell and end.", "Kcm"),
    Flag(
        "show-completion",
        STRING_OR_BARE,
        "",
        "Print the completion script of the present shell, or of bash, zsh, fish or powershell, and end.",
        "Kcm",
    ),
    Flag(
        "write-config-to",
        STRING,
        "",
        "Write the configuration that flags and --config make to this file (- for standard output) and end.",
        "Kcm",
    ),
)
"""Flags that say what the process does, rather than how."""


@cache
def bindings() -> tuple[Binding, ...]:
    """All options at their places."""
    return bind(Options)


@cache
def flag_set() -> FlagSet:
    """All flags of the manager, by section and name."""
    return FlagSet(
        sorted((*flags_of(Options), *PROCESS_FLAGS), key=lambda flag: (SECTIONS.index(flag.section), flag.name))
    )
