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
_OTHERS = ("ControllerRevision", "EndpointSlice", "Job", "Lease", "ResourceClaim", "Secret", "VolumeAttachment")
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
    Kubernetes' own, as ``Service.serving.knative.dev``."""
    name, _, group = word.partition(".")
    plain = name.lower()
    known = SHORT_NAMES.get(plain) or _KINDS.get(plain) or _PLURALS.get(plain)
    if known is None:
        return name
    group = group if group in GROUPS else _VERSION.sub("", group)
    return known if group in GROUPS else f"{known}.{group}"


def kind_in(api_version: str, kind: str) -> str:
    """The kind of an object, of which another API may have one of the same name (see ``kind_of``)."""
    return kind_of(f"{kind}.{api_version.rpartition('/')[0]}")
