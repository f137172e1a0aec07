"""The controllers of this manager, in upstream's order of registration.

The folder ``kcm_cli.controllers.NAME`` has a controller's code, which is imported only when the controller starts, and
its options. Other packages add controllers with the entry point group ``kcm.controllers``: each entry point is a
Descriptor whose ``module`` has the CONTROLLER. An unusable one is skipped and reported.

upstream: cmd/kube-controller-manager/app/controllermanager.go#NewControllerDescriptors
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import msgspec

from kcm_cli.component.generic_config import ServiceConfig
from kcm_cli.component.option_flags import flags_of
from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
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
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.controllers.ttl_after_finished.config import TTLAfterFinishedConfig
from kcm_cli.controllers.validatingadmissionpolicy_status.config import ValidatingAdmissionPolicyStatusConfig
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.generic_options import generic_flags

CONTROLLERS: tuple[Descriptor, ...] = (
    Descriptor(
        name="serviceaccount-token-controller",
        alias="serviceaccount-token",
        client="tokens-controller",
        key="SAController",
        options=ServiceAccountTokenConfig,
        starts_first=True,
    ),
    Descriptor(
        name="endpoints-controller",
        alias="endpoint",
        client="endpoint-controller",
        source="endpoint-controller",
        key="EndpointController",
        options=EndpointsConfig,
    ),
    Descriptor(
        name="endpointslice-controller",
        alias="endpointslice",
        source="endpoint-slice-controller",
        key="EndpointSliceController",
        options=EndpointSliceConfig,
    ),
    Descriptor(
        name="endpointslice-mirroring-controller",
        alias="endpointslicemirroring",
        client="endpointslicemirroring-controller",
        source="endpoint-slice-mirroring-controller",
        key="EndpointSliceMirroringController",
        options=EndpointSliceMirroringConfig,
    ),
    Descriptor(
        name="replicationcontroller-controller",
        alias="replicationcontroller",
        client="replication-controller",
        source="replication-controller",
        key="ReplicationController",
        options=ReplicationControllerConfig,
    ),
    Descriptor(
        name="pod-garbage-collector-controller",
        alias="podgc",
        client="pod-garbage-collector",
        key="PodGCController",
        options=PodGarbageCollectorConfig,
    ),
    Descriptor(
        name="resourcequota-controller",
        alias="resourcequota",
        key="ResourceQuotaController",
        options=ResourceQuotaConfig,
    ),
    Descriptor(name="namespace-controller", alias="namespace", options=NamespaceConfig),
    Descriptor(name="serviceaccount-controller", alias="serviceaccount", client="service-account-controller"),
    Descriptor(
        name="garbage-collector-controller",
        alias="garbagecollector",
        client="generic-garbage-collector",
        options=GarbageCollectorConfig,
    ),
    Descriptor(
        name="daemonset-controller",
        alias="daemonset",
        client="daemon-set-controller",
        key="DaemonSetController",
        options=DaemonSetConfig,
    ),
    Descriptor(name="job-controller", alias="job", options=JobConfig),
    Descriptor(name="podgroup-protection-controller", gates=("GenericWorkload",)),
    Descriptor(name="deployment-controller", alias="deployment", options=DeploymentConfig),
    Descriptor(name="replicaset-controller", alias="replicaset", key="ReplicaSetController", options=ReplicaSetConfig),
    Descriptor(
        name="horizontal-pod-autoscaler-controller",
        alias="horizontalpodautoscaling",
        client="horizontal-pod-autoscaler",
        source="horizontal-pod-autoscaler",
        key="HPAController",
        options=HorizontalPodAutoscalerConfig,
    ),
    Descriptor(name="disruption-controller", alias="disruption", source="controllermanager"),
    Descriptor(
        name="statefulset-controller", alias="statefulset", key="StatefulSetController", options=StatefulSetConfig
    ),
    Descriptor(name="cronjob-controller", alias="cronjob", key="CronJobController", options=CronJobConfig),
    Descriptor(
        name="certificatesigningrequest-signing-controller",
        alias="csrsigning",
        client="certificate-controller",
        key="CSRSigningController",
        options=CSRSigningConfig,
    ),
    Descriptor(
        name="certificatesigningrequest-approving-controller", alias="csrapproving", client="certificate-controller"
    ),
    Descriptor(
        name="certificatesigningrequest-cleaner-controller", alias="csrcleaner", client="certificate-controller"
    ),
    Descriptor(
        name="podcertificaterequest-cleaner-controller",
        client="podcertificaterequestcleaner",
        gates=("PodCertificateRequest",),
    ),
    Descriptor(name="ttl-controller", alias="ttl"),
    Descriptor(
        name="bootstrap-signer-controller", alias="bootstrapsigner", client="bootstrap-signer", default_enabled=False
    ),
    Descriptor(name="token-cleaner-controller", alias="tokencleaner", client="token-cleaner", default_enabled=False),
    Descriptor(
        name="node-ipam-controller",
        alias="nodeipam",
        client="node-controller",
        key="NodeIPAMController",
        options=NodeIPAMConfig,
    ),
    Descriptor(
        name="node-lifecycle-controller",
        alias="nodelifecycle",
        client="node-controller",
        source="node-controller",
        options=NodeLifecycleConfig,
    ),
    Descriptor(
        name="service-lb-controller", alias="service", key="ServiceController", options=ServiceConfig, cloud_only=True
    ),
    Descriptor(name="node-route-controller", alias="route", cloud_only=True),
    Descriptor(name="cloud-node-lifecycle-controller", alias="cloud-node-lifecycle", cloud_only=True),
    Descriptor(
        name="persistentvolume-binder-controller",
        alias="persistentvolume-binder",
        client="persistent-volume-binder",
        source="persistentvolume-controller",
        key="PersistentVolumeBinderController",
        options=PersistentVolumeBinderConfig,
    ),
    Descriptor(
        name="persistentvolume-attach-detach-controller",
        alias="attachdetach",
        client="attachdetach-controller",
        key="AttachDetachController",
        options=AttachDetachConfig,
    ),
    Descriptor(
        name="persistentvolume-expander-controller", alias="persistentvolume-expander", client="expand-controller"
    ),
    Descriptor(name="clusterrole-aggregation-controller", alias="clusterrole-aggregation"),
    Descriptor(
        name="persistentvolumeclaim-protection-controller", alias="pvc-protection", client="pvc-protection-controller"
    ),
    Descriptor(name="persistentvolume-protection-controller", alias="pv-protection", client="pv-protection-controller"),
    Descriptor(name="volumeattributesclass-protection-controller", gates=("VolumeAttributesClass",)),
    Descriptor(
        name="ttl-after-finished-controller",
        alias="ttl-after-finished",
        key="TTLAfterFinishedController",
        options=TTLAfterFinishedConfig,
    ),
    Descriptor(
        name="root-ca-certificate-publisher-controller", alias="root-ca-cert-publisher", client="root-ca-cert-publisher"
    ),
    Descriptor(
        name="kube-apiserver-serving-clustertrustbundle-publisher-controller",
        client="kube-apiserver-serving-clustertrustbundle-publisher",
        gates=("ClusterTrustBundle",),
        requires=(
            "certificates.k8s.io/v1beta1/clustertrustbundles",
            "certificates.k8s.io/v1alpha1/clustertrustbundles",
        ),
    ),
    Descriptor(name="ephemeral-volume-controller", alias="ephemeral-volume", options=EphemeralVolumeConfig),
    Descriptor(
        name="storageversion-garbage-collector-controller",
        alias="storage-version-gc",
        client="storage-version-garbage-collector",
        gates=("APIServerIdentity", "StorageVersionAPI"),
    ),
    Descriptor(
        name="resourceclaim-controller",
        alias="resource-claim-controller",
        client="resource-claim-controller",
        source="resource_claim",
        key="ResourceClaimController",
        options=ResourceClaimConfig,
        gates=("DynamicResourceAllocation",),
    ),
    Descriptor(name="resourcepoolstatusrequest-controller", gates=("DRAResourcePoolStatus",)),
    Descriptor(
        name="device-taint-eviction-controller",
        options=DeviceTaintEvictionConfig,
        gates=("DynamicResourceAllocation", "DRADeviceTaints"),
    ),
    Descriptor(
        name="legacy-serviceaccount-token-cleaner-controller",
        alias="legacy-service-account-token-cleaner",
        client="legacy-service-account-token-cleaner",
        key="LegacySATokenCleaner",
        options=LegacyTokenCleanerConfig,
    ),
    Descriptor(
        name="validatingadmissionpolicy-status-controller",
        key="ValidatingAdmissionPolicyStatusController",
        options=ValidatingAdmissionPolicyStatusConfig,
    ),
    Descriptor(name="taint-eviction-controller", client="node-controller", gates=("SeparateTaintEvictionController",)),
    Descriptor(name="service-cidr-controller", client="service-cidrs-controller", gates=("MultiCIDRServiceAllocator",)),
    Descriptor(
        name="storage-version-migrator-controller",
        alias="svm",
        gates=("StorageVersionMigrator", "InformerResourceVersion"),
    ),
    Descriptor(name="selinux-warning-controller", gates=("SELinuxChangePolicy",), default_enabled=False),
)
GROUP = "kcm.controllers"


class Unusable(Exception):
    """A package's controller cannot be used; the text says why."""


class Installed(msgspec.Struct, frozen=True):
    """The controllers of installed packages, and one line for each skipped entry point."""

    controllers: tuple[Descriptor, ...]
    problems: tuple[str, ...]


def all_controllers() -> tuple[Descriptor, ...]:
    """The built-in controllers and those of installed packages."""
    return (*CONTROLLERS, *installed().controllers)


@cache
def queue_owners() -> Mapping[str, str]:
    """The controller of each work queue, by the queue's name in metrics. Imports all controllers."""
    owned = (one for one in all_controllers() if not one.cloud_only)
    return {queue.name: one.name for one in owned for queue in one.load().all_queues}


@cache
def installed() -> Installed:
    """Load the controllers of installed packages. They must not reuse names and flags of others."""
    found: list[Descriptor] = []
    problems: list[str] = []
    for point in entry_points(group=GROUP):
        try:
            found.append(_usable(point, (*CONTROLLERS, *found)))
        except Unusable as error:
            problems.append(f"the controller {point.name} ({point.value}) of an installed package is left out: {error}")
    return Installed(tuple(found), tuple(problems))


def _usable(point: EntryPoint, others: tuple[Descriptor, ...]) -> Descriptor:
    """Load and check an entry point. Raises Unusable."""
    try:
        descriptor = point.load()
        if not isinstance(descriptor, Descriptor):
            raise Unusable("it is no kcm_cli.engine.descriptor.Descriptor")
        descriptor.load()
        flags = _flags(descriptor)
    except Unusable:
        raise
    except Exception as error:  # code of others, of which nothing is known
        raise Unusable(f"{type(error).__name__}: {error}") from error
    for other in others:
        for word in _words(descriptor):
            if word in _words(other):
                raise Unusable(f"{word} is the name of another one")
    taken = flags & generic_flags().union(*map(_flags, others))
    if taken:
        raise Unusable(f"there is another flag --{min(taken)}")
    return descriptor


def _words(descriptor: Descriptor) -> set[str]:
    return {descriptor.name, descriptor.alias} - {""}


def _flags(descriptor: Descriptor) -> frozenset[str]:
    options = descriptor.options
    return frozenset() if options is None else frozenset(flag.name for flag in flags_of(options))
