"""The kinds in a snapshot, and those that each controller needs.

Secrets are never listed. ConfigMaps, Events and custom resources are listed on request.
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LEASE_NAMESPACE


class Kind(msgspec.Struct, frozen=True):
    """A kind to list. ``older``: versions that earlier servers have instead, the newest first. ``namespace``: only the
    objects in this one."""

    gvr: GVR
    kind: str
    namespaced: bool = True
    older: tuple[str, ...] = ()
    namespace: str = ""

    @property
    def key(self) -> str:
        """``deployments.apps`` or ``pods``: the name in gaps and --include."""
        return self.gvr.group_resource


def _kind(path: str, kind: str, **more: object) -> Kind:
    *group, version, plural = path.split("/")
    return Kind(GVR("/".join(group), version, plural), kind, **more)  # type: ignore[arg-type]  # the fields of Kind


def _cluster(path: str, kind: str, **more: object) -> Kind:
    return _kind(path, kind, namespaced=False, **more)


_DEVICES = ("v1beta2", "v1beta1")
KINDS = (
    _cluster("v1/namespaces", "Namespace"),
    _cluster("v1/nodes", "Node"),
    _kind("coordination.k8s.io/v1/leases", "Lease", namespace=LEASE_NAMESPACE),
    _kind("v1/pods", "Pod"),
    _kind("v1/services", "Service"),
    _kind("v1/endpoints", "Endpoints"),
    _kind("v1/replicationcontrollers", "ReplicationController"),
    _kind("v1/resourcequotas", "ResourceQuota"),
    _kind("v1/limitranges", "LimitRange"),
    _kind("v1/serviceaccounts", "ServiceAccount"),
    _kind("v1/podtemplates", "PodTemplate"),
    _cluster("v1/persistentvolumes", "PersistentVolume"),
    _kind("v1/persistentvolumeclaims", "PersistentVolumeClaim"),
    _kind("apps/v1/deployments", "Deployment"),
    _kind("apps/v1/replicasets", "ReplicaSet"),
    _kind("apps/v1/statefulsets", "StatefulSet"),
    _kind("apps/v1/daemonsets", "DaemonSet"),
    _kind("apps/v1/controllerrevisions", "ControllerRevision"),
    _kind("batch/v1/jobs", "Job"),
    _kind("batch/v1/cronjobs", "CronJob"),
    _kind("autoscaling/v2/horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    _kind("policy/v1/poddisruptionbudgets", "PodDisruptionBudget"),
    _kind("discovery.k8s.io/v1/endpointslices", "EndpointSlice"),
    _kind("networking.k8s.io/v1/ingresses", "Ingress"),
    _cluster("networking.k8s.io/v1/ingressclasses", "IngressClass"),
    _kind("networking.k8s.io/v1/networkpolicies", "NetworkPolicy"),
    _cluster("networking.k8s.io/v1/ipaddresses", "IPAddress", older=("v1beta1",)),
    _cluster("networking.k8s.io/v1/servicecidrs", "ServiceCIDR", older=("v1beta1",)),
    _cluster("scheduling.k8s.io/v1/priorityclasses", "PriorityClass"),
    _cluster("node.k8s.io/v1/runtimeclasses", "RuntimeClass"),
    _cluster("storage.k8s.io/v1/storageclasses", "StorageClass"),
    _cluster("storage.k8s.io/v1/csidrivers", "CSIDriver"),
    _cluster("storage.k8s.io/v1/csinodes", "CSINode"),
    _kind("storage.k8s.io/v1/csistoragecapacities", "CSIStorageCapacity"),
    _cluster("storage.k8s.io/v1/volumeattachments", "VolumeAttachment"),
    _cluster("storage.k8s.io/v1/volumeattributesclasses", "VolumeAttributesClass", older=("v1beta1",)),
    _cluster("rbac.authorization.k8s.io/v1/clusterroles", "ClusterRole"),
    _cluster("rbac.authorization.k8s.io/v1/clusterrolebindings", "ClusterRoleBinding"),
    _kind("rbac.authorization.k8s.io/v1/roles", "Role"),
    _kind("rbac.authorization.k8s.io/v1/rolebindings", "RoleBinding"),
    _cluster("certificates.k8s.io/v1/certificatesigningrequests", "CertificateSigningRequest"),
    _cluster("resource.k8s.io/v1/deviceclasses", "DeviceClass", older=_DEVICES),
    _kind("resource.k8s.io/v1/resourceclaims", "ResourceClaim", older=_DEVICES),
    _kind("resource.k8s.io/v1/resourceclaimtemplates", "ResourceClaimTemplate", older=_DEVICES),
    _cluster("resource.k8s.io/v1/resourceslices", "ResourceSlice", older=_DEVICES),
    _cluster("admissionregistration.k8s.io/v1/validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    _cluster("admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    _cluster("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    _cluster("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
)
CONFIG_MAPS = _kind("v1/configmaps", "ConfigMap")
EVENTS = _kind("v1/events", "Event")
DEFINITIONS = _cluster("apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition")
CUSTOM = "custom"
"""What --include calls custom resources together with their definitions."""
SECRETS = "secrets"

NEEDS: Mapping[str, tuple[str, ...]] = {
    "serviceaccount-token-controller": (SECRETS, "serviceaccounts"),
    "bootstrap-signer-controller": (SECRETS, "configmaps"),
    "token-cleaner-controller": (SECRETS,),
    "legacy-serviceaccount-token-cleaner-controller": (SECRETS,),
    "root-ca-certificate-publisher-controller": ("configmaps", "namespaces"),
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": ("clustertrustbundles.certificates.k8s.io",),
    "storageversion-garbage-collector-controller": ("storageversions.internal.apiserver.k8s.io",),
    "storage-version-migrator-controller": ("storageversionmigrations.storagemigration.k8s.io",),
    "podcertificaterequest-cleaner-controller": ("podcertificaterequests.certificates.k8s.io",),
    "resourcepoolstatusrequest-controller": ("resourcepoolstatusrequests.resource.k8s.io",),
    "podgroup-protection-controller": ("podgroups.scheduling.k8s.io",),
    "endpoints-controller": ("services", "pods", "endpoints"),
    "endpointslice-controller": ("services", "pods", "nodes", "endpointslices.discovery.k8s.io"),
    "endpointslice-mirroring-controller": ("services", "endpoints", "endpointslices.discovery.k8s.io"),
    "replicationcontroller-controller": ("replicationcontrollers", "pods"),
    "pod-garbage-collector-controller": ("pods",),
    "resourcequota-controller": ("resourcequotas", "pods"),
    "namespace-controller": ("namespaces",),
    "serviceaccount-controller": ("serviceaccounts", "namespaces"),
    "daemonset-controller": ("daemonsets.apps", "controllerrevisions.apps", "pods", "nodes"),
    "job-controller": ("jobs.batch", "pods"),
    "deployment-controller": ("deployments.apps", "replicasets.apps"),
    "replicaset-controller": ("replicasets.apps", "pods"),
    "horizontal-pod-autoscaler-controller": ("horizontalpodautoscalers.autoscaling", "pods"),
    "disruption-controller": ("poddisruptionbudgets.policy", "pods"),
    "statefulset-controller": ("statefulsets.apps", "controllerrevisions.apps", "pods", "persistentvolumeclaims"),
    "cronjob-controller": ("cronjobs.batch", "jobs.batch"),
    "ttl-controller": ("nodes",),
    "node-ipam-controller": ("nodes",),
    "node-lifecycle-controller": ("nodes", "pods"),
    "taint-eviction-controller": ("nodes", "pods"),
    "persistentvolume-binder-controller": (
        "persistentvolumes",
        "persistentvolumeclaims",
        "storageclasses.storage.k8s.io",
        "pods",
    ),
    "persistentvolume-attach-detach-controller": (
        "pods",
        "nodes",
        "volumeattachments.storage.k8s.io",
        "persistentvolumes",
        "persistentvolumeclaims",
    ),
    "persistentvolumeclaim-protection-controller": ("persistentvolumeclaims", "pods"),
    "persistentvolume-protection-controller": ("persistentvolumes",),
    "volumeattributesclass-protection-controller": (
        "volumeattributesclasses.storage.k8s.io",
        "persistentvolumes",
        "persistentvolumeclaims",
    ),
    "ttl-after-finished-controller": ("jobs.batch",),
    "ephemeral-volume-controller": ("pods", "persistentvolumeclaims"),
    "resourceclaim-controller": (
        "pods",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
    ),
    "device-taint-eviction-controller": ("pods", "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"),
    "service-cidr-controller": ("servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io"),
    "clusterrole-aggregation-controller": ("clusterroles.rbac.authorization.k8s.io",),
    "certificatesigningrequest-cleaner-controller": ("certificatesigningrequests.certificates.k8s.io",),
    "certificatesigningrequest-approving-controller": ("certificatesigningrequests.certificates.k8s.io",),
    "certificatesigningrequest-signing-controller": ("certificatesigningrequests.certificates.k8s.io",),
    "validatingadmissionpolicy-status-controller": (
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        CUSTOM,
    ),
}
"""The kinds without which a controller would write what it would not write on the cluster. One that is not in the
snapshot leaves the controller out of the twin. ``custom``: it also reads the definitions of custom resources."""
