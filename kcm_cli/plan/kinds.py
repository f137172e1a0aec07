"""The kinds in a snapshot.

Secrets are never listed. ConfigMaps, Events and custom resources are listed on request.
"""

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.api.short_names import kind_of_reference
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.machinery.meta import OwnerReference
from kcm_cli.manager.controller_map import installed


class ListedKind(msgspec.Struct, frozen=True):
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


def _kind(path: str, kind: str, **more: object) -> ListedKind:
    *group, version, plural = path.split("/")
    return ListedKind(GVR("/".join(group), version, plural), kind, **more)  # type: ignore[arg-type]  # its fields


def _cluster(path: str, kind: str, **more: object) -> ListedKind:
    return _kind(path, kind, namespaced=False, **more)


_DEVICES = ("v1beta2", "v1beta1")
_POLICIES = "admissionregistration.k8s.io/v1"
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
    _cluster(f"{_POLICIES}/mutatingadmissionpolicies", "MutatingAdmissionPolicy", older=("v1beta1",)),
    _cluster(f"{_POLICIES}/mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", older=("v1beta1",)),
    _cluster(f"{_POLICIES}/validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    _cluster(f"{_POLICIES}/validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    _cluster(f"{_POLICIES}/validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    _cluster(f"{_POLICIES}/mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
)
CONFIG_MAPS = _kind("v1/configmaps", "ConfigMap")
EVENTS = _kind("v1/events", "Event")
DEFINITIONS = _cluster("apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition")
SECRETS = "secrets"


def kind_of_owner(ref: OwnerReference) -> str:
    """The kind of an owner as an answer has it."""
    return kind_of_reference(ref.api_version, ref.kind)


def installed_kinds() -> frozenset[str]:
    """The kinds that controllers of installed packages follow, such as ``things.example.com``."""
    return frozenset(
        watch.resource.gvr.group_resource for one in installed().controllers for watch in one.load().followed
    )
