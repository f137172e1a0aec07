"""Claims, volumes and classes of storage.

Source: pkg/api/{persistentvolume,persistentvolumeclaim,storage}/util.go.
"""

from collections.abc import Mapping
from functools import lru_cache

from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.strategy.warnings import nodes
from kcm_cli.sandbox.apiserver.types import Tree

_CLASS = "volume.beta.kubernetes.io/storage-class"
_CLASS_TEXT = 'deprecated since v1.8; use "storageClassName" attribute instead'
_MOUNTS = "volume.beta.kubernetes.io/mount-options"
_MOUNTS_TEXT = 'deprecated since v1.31; use "mountOptions" attribute instead'
_RECYCLE = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
    "Instead, the recommended approach is to use dynamic provisioning."
)
_SOURCES = (
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
    "set to true to prevent possible logging of tokens in volume attributes"
)


@lru_cache(maxsize=4096)
def _is_whole(value: str) -> bool:
    return not from_json(value).milli_value() % 1000


def fraction(amounts: Mapping[str, str] | None, name: str, path: str) -> list[str]:
    """Bytes that are not whole."""
    value = (amounts or {}).get(name)
    if value is None or _is_whole(value):
        return []
    return [f"{path}[{name}]: fractional byte value {quote(value)} is invalid, must be an integer"]


def of_claim_spec(spec: Tree, path: str) -> list[str]:
    """A claim's spec, also in a template."""
    resources = spec.get("resources") or {}
    found = fraction(resources.get("requests"), "storage", f"{path}.resources.requests")
    return found + fraction(resources.get("limits"), "storage", f"{path}.resources.limits")


def of_claim(new: Tree, old: Tree | None) -> list[str]:
    """A claim, created or updated."""
    found: list[str] = []
    if _CLASS in (new["metadata"].get("annotations") or ()):
        found.append(f"metadata.annotations[{_CLASS}]: {_CLASS_TEXT}")
    return found + of_claim_spec(new["spec"], "spec")


def of_volume(new: Tree, old: Tree | None) -> list[str]:
    """A volume, created or updated."""
    spec, annotations = new["spec"], new["metadata"].get("annotations") or {}
    found = [
        f"metadata.annotations[{key}]: {text}"
        for key, text in ((_CLASS, _CLASS_TEXT), (_MOUNTS, _MOUNTS_TEXT))
        if key in annotations
    ]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(_RECYCLE)
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        found += nodes.of_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    return found + [f"spec.{shown}: {text}" for kind, shown, text in _SOURCES if spec.get(kind) is not None]


def of_storage_class(new: Tree, old: Tree | None) -> list[str]:
    """A StorageClass."""
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {nodes.DEPRECATED[item['key']]}"
        for index, term in enumerate(new.get("allowedTopologies") or ())
        for number, item in enumerate(term.get("matchLabelExpressions") or ())
        if item.get("key") in nodes.DEPRECATED
    ]


def of_capacity(new: Tree, old: Tree | None) -> list[str]:
    """A CSIStorageCapacity."""
    return nodes.of_selector(new.get("nodeTopology"), "nodeTopology")


def of_driver(new: Tree, old: Tree | None) -> list[str]:
    """A CSIDriver; an update only if its token requests change."""
    requests = new["spec"].get("tokenRequests")
    changed = old is None or requests != old["spec"].get("tokenRequests")
    unset = new["spec"].get("serviceAccountTokenInSecrets") is None
    return [_TOKENS] if requests and changed and unset else []
