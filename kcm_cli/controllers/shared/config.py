"""The options of the controllers that have only one: how many objects they sync at a time."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class CronJobConfig:
    """Options of the cronjob controller."""

    concurrent_syncs: int = concurrency("CronJobs", 5, "concurrent-cron-job-syncs", "ConcurrentCronJobSyncs", minimum=1)


@dataclass(frozen=True)
class DaemonSetConfig:
    """Options of the daemonset controller."""

    concurrent_syncs: int = concurrency(
        "DaemonSets", 2, "concurrent-daemonset-syncs", "ConcurrentDaemonSetSyncs", minimum=1
    )


@dataclass(frozen=True)
class DeploymentConfig:
    """Options of the deployment controller."""

    concurrent_syncs: int = concurrency("Deployments", 5, "concurrent-deployment-syncs", "ConcurrentDeploymentSyncs")


@dataclass(frozen=True)
class DeviceTaintEvictionConfig:
    """Options of the device-taint-eviction controller."""

    concurrent_syncs: int = concurrency(
        "evictions and taint rules", 8, "concurrent-device-taint-eviction-syncs", "ConcurrentSyncs", minimum=1
    )


@dataclass(frozen=True)
class EphemeralVolumeConfig:
    """Options of the ephemeral-volume controller."""

    concurrent_syncs: int = concurrency(
        "pods with ephemeral volumes",
        5,
        "concurrent-ephemeralvolume-syncs",
        "ConcurrentEphemeralVolumeSyncs",
        minimum=1,
    )


@dataclass(frozen=True)
class JobConfig:
    """Options of the job controller."""

    concurrent_syncs: int = concurrency("Jobs", 5, "concurrent-job-syncs", "ConcurrentJobSyncs", minimum=1)


@dataclass(frozen=True)
class ReplicaSetConfig:
    """Options of the replicaset controller."""

    concurrent_syncs: int = concurrency("ReplicaSets", 5, "concurrent-replicaset-syncs", "ConcurrentRSSyncs")


@dataclass(frozen=True)
class ReplicationControllerConfig:
    """Options of the replicationcontroller controller."""

    concurrent_syncs: int = concurrency("ReplicationControllers", 5, "concurrent-rc-syncs", "ConcurrentRCSyncs")


@dataclass(frozen=True)
class ResourceClaimConfig:
    """Options of the resourceclaim controller."""

    concurrent_syncs: int = concurrency(
        "ResourceClaims and pods", 50, "concurrent-resourceclaim-syncs", "ConcurrentSyncs", minimum=1
    )


@dataclass(frozen=True)
class ServiceConfig:
    """Options of the service-lb controller, which only cloud controller managers run."""

    concurrent_syncs: int = concurrency("Services", 1, "concurrent-service-syncs", "ConcurrentServiceSyncs")


@dataclass(frozen=True)
class StatefulSetConfig:
    """Options of the statefulset controller."""

    concurrent_syncs: int = concurrency(
        "StatefulSets", 5, "concurrent-statefulset-syncs", "ConcurrentStatefulSetSyncs", minimum=1
    )


@dataclass(frozen=True)
class TTLAfterFinishedConfig:
    """Options of the ttl-after-finished controller."""

    concurrent_syncs: int = concurrency("finished Jobs", 5, "concurrent-ttl-after-finished-syncs", "ConcurrentTTLSyncs")


@dataclass(frozen=True)
class ValidatingAdmissionPolicyStatusConfig:
    """Options of the validatingadmissionpolicy-status controller."""

    concurrent_syncs: int = concurrency(
        "ValidatingAdmissionPolicies", 5, "concurrent-validating-admission-policy-status-syncs", "ConcurrentPolicySyncs"
    )
