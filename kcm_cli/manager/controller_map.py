"""The controllers of this manager: one literal table, in upstream's order of registration.

A controller's code is in ``kcm_cli.controllers.NAME.controller``, imported only when it is started. Third
parties add theirs by the entry point group ``kcm.controllers`` (each entry point is a Descriptor).

upstream: cmd/kube-controller-manager/app/controllermanager.go#NewControllerDescriptors
"""

from importlib.metadata import entry_points

from kcm_cli.engine.descriptor import Descriptor

CONTROLLERS: tuple[Descriptor, ...] = (
    Descriptor(
        name="serviceaccount-token-controller",
        alias="serviceaccount-token",
        client="tokens-controller",
        starts_first=True,
    ),
    Descriptor(
        name="endpoints-controller", alias="endpoint", client="endpoint-controller", source="endpoint-controller"
    ),
    Descriptor(
        name="endpointslice-controller",
        alias="endpointslice",
        client="endpointslice-controller",
        source="endpoint-slice-controller",
    ),
    Descriptor(
        name="endpointslice-mirroring-controller",
        alias="endpointslicemirroring",
        client="endpointslicemirroring-controller",
        source="endpoint-slice-mirroring-controller",
    ),
    Descriptor(
        name="replicationcontroller-controller",
        alias="replicationcontroller",
        client="replication-controller",
        source="replication-controller",
    ),
    Descriptor(name="pod-garbage-collector-controller", alias="podgc", client="pod-garbage-collector"),
    Descriptor(name="resourcequota-controller", alias="resourcequota", client="resourcequota-controller"),
    Descriptor(
        name="namespace-controller",
        alias="namespace",
        client="namespace-controller",
    ),
    Descriptor(
        name="serviceaccount-controller",
        alias="serviceaccount",
        client="service-account-controller",
    ),
    Descriptor(name="garbage-collector-controller", alias="garbagecollector", client="generic-garbage-collector"),
    Descriptor(name="daemonset-controller", alias="daemonset", client="daemon-set-controller"),
    Descriptor(name="job-controller", alias="job", client="job-controller"),
    Descriptor(
        name="podgroup-protection-controller", client="podgroup-protection-controller", gates=("GenericWorkload",)
    ),
    Descriptor(
        name="deployment-controller",
        alias="deployment",
        client="deployment-controller",
    ),
    Descriptor(
        name="replicaset-controller",
        alias="replicaset",
        client="replicaset-controller",
    ),
    Descriptor(
        name="horizontal-pod-autoscaler-controller",
        alias="horizontalpodautoscaling",
        client="horizontal-pod-autoscaler",
        source="horizontal-pod-autoscaler",
    ),
    Descriptor(
        name="disruption-controller", alias="disruption", client="disruption-controller", source="controllermanager"
    ),
    Descriptor(name="statefulset-controller", alias="statefulset", client="statefulset-controller"),
    Descriptor(name="cronjob-controller", alias="cronjob", client="cronjob-controller"),
    Descriptor(
        name="certificatesigningrequest-signing-controller", alias="csrsigning", client="certificate-controller"
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
    Descriptor(name="ttl-controller", alias="ttl", client="ttl-controller"),
    Descriptor(
        name="bootstrap-signer-controller", alias="bootstrapsigner", client="bootstrap-signer", default_enabled=False
    ),
    Descriptor(name="token-cleaner-controller", alias="tokencleaner", client="token-cleaner", default_enabled=False),
    Descriptor(name="node-ipam-controller", alias="nodeipam", client="node-controller"),
    Descriptor(
        name="node-lifecycle-controller", alias="nodelifecycle", client="node-controller", source="node-controller"
    ),
    Descriptor(name="service-lb-controller", alias="service", cloud_only=True),
    Descriptor(name="node-route-controller", alias="route", cloud_only=True),
    Descriptor(name="cloud-node-lifecycle-controller", alias="cloud-node-lifecycle", cloud_only=True),
    Descriptor(
        name="persistentvolume-binder-controller",
        alias="persistentvolume-binder",
        client="persistent-volume-binder",
        source="persistentvolume-controller",
    ),
    Descriptor(
        name="persistentvolume-attach-detach-controller", alias="attachdetach", client="attachdetach-controller"
    ),
    Descriptor(
        name="persistentvolume-expander-controller", alias="persistentvolume-expander", client="expand-controller"
    ),
    Descriptor(
        name="clusterrole-aggregation-controller",
        alias="clusterrole-aggregation",
        client="clusterrole-aggregation-controller",
    ),
    Descriptor(
        name="persistentvolumeclaim-protection-controller", alias="pvc-protection", client="pvc-protection-controller"
    ),
    Descriptor(name="persistentvolume-protection-controller", alias="pv-protection", client="pv-protection-controller"),
    Descriptor(
        name="volumeattributesclass-protection-controller",
        client="volumeattributesclass-protection-controller",
        gates=("VolumeAttributesClass",),
    ),
    Descriptor(
        name="ttl-after-finished-controller", alias="ttl-after-finished", client="ttl-after-finished-controller"
    ),
    Descriptor(
        name="root-ca-certificate-publisher-controller",
        alias="root-ca-cert-publisher",
        client="root-ca-cert-publisher",
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
    Descriptor(name="ephemeral-volume-controller", alias="ephemeral-volume", client="ephemeral-volume-controller"),
    Descriptor(
        name="storageversion-garbage-collector-controller",
        alias="storage-version-gc",
        client="storage-version-garbage-collector",
        gates=(
            "APIServerIdentity",
            "StorageVersionAPI",
        ),
    ),
    Descriptor(
        name="resourceclaim-controller",
        alias="resource-claim-controller",
        client="resource-claim-controller",
        source="resource_claim",
        gates=("DynamicResourceAllocation",),
    ),
    Descriptor(
        name="resourcepoolstatusrequest-controller",
        client="resourcepoolstatusrequest-controller",
        gates=("DRAResourcePoolStatus",),
    ),
    Descriptor(
        name="device-taint-eviction-controller",
        client="device-taint-eviction-controller",
        gates=(
            "DynamicResourceAllocation",
            "DRADeviceTaints",
        ),
    ),
    Descriptor(
        name="legacy-serviceaccount-token-cleaner-controller",
        alias="legacy-service-account-token-cleaner",
        client="legacy-service-account-token-cleaner",
    ),
    Descriptor(
        name="validatingadmissionpolicy-status-controller", client="validatingadmissionpolicy-status-controller"
    ),
    Descriptor(name="taint-eviction-controller", client="node-controller", gates=("SeparateTaintEvictionController",)),
    Descriptor(name="service-cidr-controller", client="service-cidrs-controller", gates=("MultiCIDRServiceAllocator",)),
    Descriptor(
        name="storage-version-migrator-controller",
        alias="svm",
        client="storage-version-migrator-controller",
        gates=(
            "StorageVersionMigrator",
            "InformerResourceVersion",
        ),
    ),
    Descriptor(
        name="selinux-warning-controller",
        client="selinux-warning-controller",
        gates=("SELinuxChangePolicy",),
        default_enabled=False,
    ),
)

GROUP = "kcm.controllers"


class ControllerMapError(Exception):
    """Two controllers of one name, or an entry point that is no Descriptor."""


def all_controllers() -> tuple[Descriptor, ...]:
    """The built-in controllers and those of installed packages. Raises ControllerMapError."""
    return checked((*CONTROLLERS, *_installed()))


def checked(descriptors: tuple[Descriptor, ...]) -> tuple[Descriptor, ...]:
    """The same descriptors; raises ControllerMapError if a name or alias stands for two of them."""
    owners: dict[str, str] = {}
    for descriptor in descriptors:
        for word in {descriptor.name, descriptor.alias} - {""}:
            if word in owners:
                raise ControllerMapError(f"{word} names two controllers: {owners[word]} and {descriptor.name}")
            owners[word] = descriptor.name
    return descriptors


def _installed() -> tuple[Descriptor, ...]:
    found: list[Descriptor] = []
    for point in entry_points(group=GROUP):
        loaded = point.load()
        if not isinstance(loaded, Descriptor):
            raise ControllerMapError(
                f"entry point {point.name} ({point.value}) is no kcm_cli.engine.descriptor.Descriptor"
            )
        found.append(loaded)
    return tuple(found)
