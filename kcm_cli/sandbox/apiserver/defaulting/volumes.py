"""Defaults of volumes, PersistentVolumes and PersistentVolumeClaims.

upstream: pkg/apis/core/v1/{defaults,zz_generated.defaults}.go
"""

from kcm_cli.machinery.images import pull_policy
from kcm_cli.sandbox.apiserver.defaulting import fill, resources
from kcm_cli.sandbox.apiserver.types import Tree

_MODE = 0o644
_EMPTY_IS_ABSENT: dict[str, dict[str, object]] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_ABSENT: dict[str, dict[str, object]] = {
    "hostPath": {"type": ""},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    **dict.fromkeys(("secret", "configMap", "downwardAPI", "projected"), {"defaultMode": _MODE}),
}


def volume(doc: Tree) -> None:
    """Default a volume of a pod."""
    source_found = False
    for name, source in doc.items():
        if name == "name" or source is None:
            continue
        source_found = True
        _source(name, source)
    if not source_found:
        doc["emptyDir"] = {}


def persistent_source(spec: Tree) -> None:
    """Default the source of a PersistentVolume, which is a field of its spec."""
    for name in ("hostPath", "rbd", "iscsi", "azureDisk", "scaleIO"):
        if (source := spec.get(name)) is not None:
            _fill(name, source)


def claim_spec(spec: Tree) -> None:
    """Default the spec of a PersistentVolumeClaim or of a template for one."""
    fill.absent(spec, volumeMode="Filesystem")
    resources.requirements(spec)
    for field in ("dataSource", "dataSourceRef"):
        fill.empty(spec.get(field), apiGroup=None)


def divisor(reference: Tree) -> None:
    """Set the divisor of a ResourceFieldSelector, which upstream writes even if it is not set."""
    reference["divisor"] = resources.canonical(reference.get("divisor"))


def _fill(name: str, source: Tree) -> None:
    fill.empty(source, **_EMPTY_IS_ABSENT.get(name, {}))
    fill.absent(source, **_ABSENT.get(name, {}))


def _source(name: str, source: Tree) -> None:
    _fill(name, source)
    if name == "downwardAPI":
        _items(source)
    elif name == "projected":
        for item in source.get("sources") or ():
            _projection(item)
    elif name == "emptyDir" and source.get("sizeLimit") is not None:
        source["sizeLimit"] = resources.canonical(source["sizeLimit"])
    elif name == "ephemeral":
        if (claim := source.get("volumeClaimTemplate")) is not None:
            claim.setdefault("metadata", {})
            claim_spec(claim.setdefault("spec", {}))
    elif name == "image" and not source.get("pullPolicy"):
        source["pullPolicy"] = pull_policy(source.get("reference", ""))


def _projection(item: Tree) -> None:
    if (downward := item.get("downwardAPI")) is not None:
        _items(downward)
    fill.absent(item.get("serviceAccountToken"), expirationSeconds=3600)


def _items(downward: Tree) -> None:
    for item in downward.get("items") or ():
        fill.empty(item.get("fieldRef"), apiVersion="v1")
        if (reference := item.get("resourceFieldRef")) is not None:
            divisor(reference)


def claim(doc: Tree) -> None:
    """Default a PersistentVolumeClaim."""
    claim_spec(doc.setdefault("spec", {}))
    status = doc.setdefault("status", {})
    fill.empty(status, phase="Pending")
    resources.resource_list(status.get("capacity"))
    resources.resource_list(status.get("allocatedResources"))
