"""Well-known names that several parts use.

upstream: staging/src/k8s.io/api/core/v1/{well_known_labels,well_known_taints,annotation_key_constants,types}.go
"""

ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
AUTHENTICATED = "system:authenticated"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
ENFORCE_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
HEADLESS = "service.kubernetes.io/headless"
HOSTNAME = "kubernetes.io/hostname"
INGRESS_CLASS = "kubernetes.io/ingress.class"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LAST_USED = "kubernetes.io/legacy-token-last-used"
LEADER = "control-plane.alpha.kubernetes.io/leader"
LEASE_NAMESPACE = "kube-node-lease"
MASTERS = "system:masters"
MIRROR = "kubernetes.io/config.mirror"
NOT_READY = "node.kubernetes.io/not-ready"
PVC_PROTECTION = "kubernetes.io/pvc-protection"
REGION = "topology.kubernetes.io/region"
ROOT_CA = "kube-root-ca.crt"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
UNAUTHENTICATED = "system:unauthenticated"
UNREACHABLE = "node.kubernetes.io/unreachable"
ZONE = "topology.kubernetes.io/zone"

GROUPS = frozenset(
    (
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    )
)
"""The API groups of kube-apiserver itself."""
