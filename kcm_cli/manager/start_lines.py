"""What the log says when a controller starts and ends.

upstream: the Run functions in pkg/controller
"""

import msgspec


class StartLines(msgspec.Struct, frozen=True):
    """The messages when it starts and when it ends, and the fields of both."""

    started: str
    ended: str
    fields: tuple[tuple[str, str], ...] = ()


def _of(what: str, **fields: str) -> StartLines:
    return StartLines(f"Starting {what}", f"Shutting down {what}", tuple(fields.items()))


_SIGNING = (
    "csrsigning-kubelet-serving",
    "csrsigning-kubelet-client",
    "csrsigning-kube-apiserver-client",
    "csrsigning-legacy-unknown",
)
_MIGRATOR = ("resource-version-controller", "storage-version-migrator-controller", "migration-runner-controller")

LINES: dict[str, tuple[StartLines, ...]] = {
    "certificatesigningrequest-approving-controller": (_of("certificate controller", name="csrapproving"),),
    "certificatesigningrequest-cleaner-controller": (_of("CSR cleaner controller"),),
    "certificatesigningrequest-signing-controller": tuple(_of("certificate controller", name=one) for one in _SIGNING),
    "clusterrole-aggregation-controller": (_of("ClusterRoleAggregator controller"),),
    "cronjob-controller": (_of("cronjob controller v2"),),
    "daemonset-controller": (_of("daemon sets controller"),),
    "deployment-controller": (_of("controller", controller="deployment"),),
    "device-taint-eviction-controller": (
        StartLines("Starting", "Shut down controller", (("controller", "device-taint-eviction"),)),
    ),
    "disruption-controller": (_of("disruption controller"),),
    "endpoints-controller": (_of("endpoint controller"),),
    "endpointslice-controller": (_of("endpoint slice controller"),),
    "endpointslice-mirroring-controller": (_of("EndpointSliceMirroring controller"),),
    "ephemeral-volume-controller": (_of("ephemeral volume controller"),),
    "garbage-collector-controller": (_of("controller", controller="garbagecollector"),),
    "horizontal-pod-autoscaler-controller": (_of("HPA controller"),),
    "job-controller": (_of("job controller"),),
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": (
        _of("ClusterTrustBundle CA cert publisher controller"),
    ),
    "legacy-serviceaccount-token-cleaner-controller": (_of("legacy service account token cleaner controller"),),
    "namespace-controller": (_of("namespace controller"),),
    "node-ipam-controller": (_of("ipam controller"), _of("range CIDR allocator")),
    "node-lifecycle-controller": (_of("node controller"),),
    "persistentvolume-attach-detach-controller": (_of("attach detach controller"),),
    "persistentvolume-binder-controller": (_of("persistent volume controller"),),
    "persistentvolume-expander-controller": (_of("expand controller"),),
    "persistentvolume-protection-controller": (_of("PV protection controller"),),
    "persistentvolumeclaim-protection-controller": (_of("PVC protection controller"),),
    "pod-garbage-collector-controller": (_of("GC controller"),),
    "podcertificaterequest-cleaner-controller": (_of("PodCertificateRequest cleaner controller"),),
    "podgroup-protection-controller": (_of("PodGroup protection controller"),),
    "replicaset-controller": (_of("controller", name="replicaset"),),
    "replicationcontroller-controller": (_of("controller", name="replicationcontroller"),),
    "resourceclaim-controller": (_of("resource claim controller"),),
    "resourcepoolstatusrequest-controller": (_of("ResourcePoolStatusRequest controller"),),
    "resourcequota-controller": (_of("resource quota controller"),),
    "root-ca-certificate-publisher-controller": (_of("root CA cert publisher controller"),),
    "selinux-warning-controller": (_of("SELinux warning controller"),),
    "service-cidr-controller": (StartLines("Starting", "Shutting down", (("controller", "service-cidr-controller"),)),),
    "serviceaccount-controller": (_of("service account controller"),),
    "statefulset-controller": (StartLines("Starting stateful set controller", "Shutting down statefulset controller"),),
    "storage-version-migrator-controller": tuple(
        StartLines("Starting", "Shutting down", (("controller", name),))
        for name in (
            "resource-version-controller",
            "storage-version-migrator-controller",
            "migration-runner-controller",
        )
    ),
    "storageversion-garbage-collector-controller": (_of("storage version garbage collector"),),
    "taint-eviction-controller": (
        StartLines("Starting", "Shutting down controller", (("controller", "taint-eviction-controller"),)),
    ),
    "token-cleaner-controller": (_of("token cleaner controller"),),
    "ttl-after-finished-controller": (_of("TTL after finished controller"),),
    "ttl-controller": (_of("TTL controller"),),
    "volumeattributesclass-protection-controller": (_of("VAC protection controller"),),
}
"""By controller; one that is not there is announced as "Controller starting..." at verbosity 1 only, as all are."""
