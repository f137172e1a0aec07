"""The words for kinds that kubectl accepts without asking an API server. Facts of v1.36's discovery."""

import re

from kcm_cli.api.well_known import GROUPS

SHORT_NAMES = {
    "cj": "CronJob",
    "cm": "ConfigMap",
    "csr": "CertificateSigningRequest",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "ep": "Endpoints",
    "hpa": "HorizontalPodAutoscaler",
    "ing": "Ingress",
    "limits": "LimitRange",
    "netpol": "NetworkPolicy",
    "no": "Node",
    "ns": "Namespace",
    "pc": "PriorityClass",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "quota": "ResourceQuota",
    "rc": "ReplicationController",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sc": "StorageClass",
    "sts": "StatefulSet",
    "svc": "Service",
}
_OTHERS = (
    *("APIService", "CSIDriver", "CSINode", "CSIStorageCapacity", "ClusterRole", "ClusterRoleBinding"),
    *("ControllerRevision", "CustomResourceDefinition", "DeviceClass", "EndpointSlice", "Event", "IPAddress"),
    *("IngressClass", "Job", "Lease", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    *("MutatingWebhookConfiguration", "PodTemplate", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
    *("Role", "RoleBinding", "RuntimeClass", "Secret", "ServiceCIDR", "ValidatingAdmissionPolicy"),
    *("ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment"),
    "VolumeAttributesClass",
)
_VERSION = re.compile(r"^v\d\w*\.", re.ASCII)
_KINDS = {kind.lower(): kind for kind in (*SHORT_NAMES.values(), *_OTHERS)}


def plural_of(kind: str) -> str:
    """The plural of a kind, in lower case, as resources have it."""
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith("y") and word[-2:-1] not in ("a", "e", "o", "u"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch")) else f"{word}s"


_PLURALS = {plural_of(kind): kind for kind in _KINDS.values()}


def kind_of(word: str) -> str:
    """The kind that a word such as ``po``, ``pods``, ``Pod``, ``deployments.apps`` or ``deployments.v1.apps`` names. A
    word that is not in the table is returned as it is, without its group; one that is, and has a group that is none of
    Kubernetes' own, as ``Service.serving.knative.dev``. Short names are those of Kubernetes' own kinds only."""
    name, _, group = word.partition(".")
    plain, group = name.lower(), group if group in GROUPS else _VERSION.sub("", group)
    if group in GROUPS and plain in SHORT_NAMES:
        return SHORT_NAMES[plain]
    known = _KINDS.get(plain) or _PLURALS.get(plain)
    return kind_in(group, known) if known is not None else name


def kind_in(group: str, kind: str) -> str:
    """A kind as people are shown it: one of another API that has the name of one of Kubernetes' with its group, as
    ``Service.serving.knative.dev``."""
    known = _KINDS.get(kind.lower())
    if known is None:
        return kind
    return known if group in GROUPS else f"{kind}.{group}"


def kind_of_reference(api_version: str, kind: str) -> str:
    """The same of what a reference names by apiVersion and kind."""
    return kind_in(api_version.rpartition("/")[0], kind)
