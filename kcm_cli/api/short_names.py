"""The words for kinds that kubectl accepts without asking an API server. Facts of v1.36's discovery."""

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
_OTHERS = ("ControllerRevision", "EndpointSlice", "Job", "Lease", "ResourceClaim", "Secret", "VolumeAttachment")
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
    """The kind that a word such as ``po``, ``pods``, ``Pod`` or ``deployments.apps`` names. A word that is not in the
    table is returned as it is, without its group."""
    plain = word.partition(".")[0].lower()
    return SHORT_NAMES.get(plain) or _KINDS.get(plain) or _PLURALS.get(plain) or word.partition(".")[0]
