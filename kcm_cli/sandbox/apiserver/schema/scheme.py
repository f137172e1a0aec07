"""The kinds that are registered in a server's scheme, and the errors for bodies of another kind than the path's."""

from kcm_cli.api.resource import group_version
from kcm_cli.machinery.quoting import quote

SCHEME = "pkg/api/legacyscheme/scheme.go:30"
WEBHOOK_SCHEME = "k8s.io/apiserver/pkg/util/webhook/client.go:71"

_OWN_SCHEMES = {
    "apiextensions.k8s.io": "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
    "apiregistration.k8s.io": "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
}
"""The groups of apiextensions-apiserver and kube-aggregator, whose schemes have only their own kinds."""

_LEGACY = {
    "apps/v1beta1": ("Deployment", "StatefulSet", "ControllerRevision", "Scale"),
    "apps/v1beta2": ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision", "Scale"),
    "extensions/v1beta1": ("Deployment", "DaemonSet", "ReplicaSet", "Ingress", "NetworkPolicy", "Scale"),
    "batch/v1beta1": ("CronJob",),
    "autoscaling/v2beta1": ("HorizontalPodAutoscaler",),
    "autoscaling/v2beta2": ("HorizontalPodAutoscaler",),
    "policy/v1beta1": ("PodDisruptionBudget", "Eviction"),
    "networking.k8s.io/v1beta1": ("Ingress", "IngressClass"),
    "rbac.authorization.k8s.io/v1beta1": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    "rbac.authorization.k8s.io/v1alpha1": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    "scheduling.k8s.io/v1beta1": ("PriorityClass",),
    "scheduling.k8s.io/v1alpha1": ("PriorityClass",),
    "storage.k8s.io/v1beta1": ("StorageClass", "VolumeAttachment", "CSIDriver", "CSINode", "CSIStorageCapacity"),
    "coordination.k8s.io/v1beta1": ("Lease",),
    "discovery.k8s.io/v1beta1": ("EndpointSlice",),
    "events.k8s.io/v1beta1": ("Event",),
    "node.k8s.io/v1beta1": ("RuntimeClass",),
    "certificates.k8s.io/v1beta1": ("CertificateSigningRequest",),
    "authentication.k8s.io/v1beta1": ("TokenReview", "SelfSubjectReview"),
    "authorization.k8s.io/v1beta1": (
        "SubjectAccessReview",
        "SelfSubjectAccessReview",
        "LocalSubjectAccessReview",
        "SelfSubjectRulesReview",
    ),
    "apiextensions.k8s.io/v1beta1": ("CustomResourceDefinition",),
    "apiregistration.k8s.io/v1beta1": ("APIService",),
    "admissionregistration.k8s.io/v1beta1": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
}
"""Versions that are no longer served, but registered, so that the server can decode them."""

UNVERSIONED = frozenset(("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"))
"""The kinds that are registered whatever version a body names."""

_legacy_kinds = frozenset(f"{gv}/{kind}" for gv, kinds in _LEGACY.items() for kind in kinds)


def scheme_of(group: str) -> str:
    """The name of the scheme of the server that a group belongs to."""
    return _OWN_SCHEMES.get(group, SCHEME)


def is_registered(registered: frozenset[str], group: str, version: str, kind: str) -> bool:
    """Whether the server of a group can decode a kind."""
    key = f"{group}/{version}/{kind}"
    if key in registered or key in _legacy_kinds or kind in UNVERSIONED:
        return True
    if kind == "ListOptions":  # of every version, as the options of writes
        return f"{group}/{version}/DeleteOptions" in registered
    return key == "/v1/List"


def not_registered(group: str, version: str, kind: str, scheme: str = SCHEME) -> str:
    gv = group_version(group, version)
    return f"no kind {quote(kind)} is registered for version {quote(gv)} in scheme {quote(scheme)}"


def no_conversion(version: str, kind: str, group: str, expected: str) -> str:
    """``group`` and ``expected``: the kind that the path accepts."""
    return f"converting ({version}.{kind}) to ({internal(group)}.{expected}): unknown conversion"


def internal(group: str) -> str:
    """The package of a group's internal types: core, apps, rbac, networking."""
    return group.partition(".")[0] or "core"
