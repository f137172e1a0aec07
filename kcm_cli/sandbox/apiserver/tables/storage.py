"""Tables of volumes, claims and their classes.

upstream: pkg/printers/internalversion/printers.go (v1.36)
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, wide
from kcm_cli.sandbox.apiserver.tables.core import UNSET, name_of
from kcm_cli.sandbox.apiserver.types import Tree

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def _modes(modes: list[str] | None) -> str:
    found = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _class_of(doc: Tree) -> str:
    annotations = doc["metadata"].get("annotations") or {}
    found = annotations.get(_BETA_CLASS)
    return str((doc.get("spec") or {}).get("storageClassName") or "") if found is None else found


def _volume(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    claim = spec.get("claimRef")
    return [
        name_of(doc),
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if doc["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_of(doc),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        created(doc, now),
        spec.get("volumeMode") or UNSET,
    ]


def _claim(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    bound = spec.get("volumeName") or ""
    return [
        name_of(doc),
        "Terminating" if doc["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        bound,
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class_of(doc),
        spec.get("volumeAttributesClassName") or UNSET,
        created(doc, now),
        spec.get("volumeMode") or UNSET,
    ]


def _storage_class(doc: Tree, now: datetime) -> list[object]:
    annotations = doc["metadata"].get("annotations") or {}
    keys = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
    default = any(annotations.get(key) == "true" for key in keys)
    return [
        name_of(doc) + (" (default)" if default else ""),
        doc.get("provisioner", ""),
        doc.get("reclaimPolicy") or "Delete",
        doc.get("volumeBindingMode") or "Immediate",
        bool(doc.get("allowVolumeExpansion")),
        created(doc, now),
    ]


def _claim_columns() -> tuple[Column, ...]:
    spec, status = "PersistentVolumeClaimSpec", "PersistentVolumeClaimStatus"
    return (
        NAME,
        Column("Status", f"{status}.phase"),
        Column("Volume", f"{spec}.volumeName"),
        Column("Capacity", f"{status}.capacity"),
        Column("Access Modes", f"{status}.accessModes"),
        Column("StorageClass", "StorageClass of the pvc"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        AGE,
        wide("VolumeMode", f"{spec}.volumeMode"),
    )


def _volume_columns() -> tuple[Column, ...]:
    spec, status = "PersistentVolumeSpec", "PersistentVolumeStatus"
    return (
        NAME,
        Column("Capacity", f"{spec}.capacity"),
        Column("Access Modes", f"{spec}.accessModes"),
        Column("Reclaim Policy", f"{spec}.persistentVolumeReclaimPolicy"),
        Column("Status", f"{status}.phase"),
        Column("Claim", f"{spec}.claimRef"),
        Column("StorageClass", "StorageClass of the pv"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        Column("Reason", f"{status}.reason"),
        AGE,
        wide("VolumeMode", f"{spec}.volumeMode"),
    )


LAYOUTS: dict[str, Layout] = {
    "persistentvolumes": Layout(_volume_columns(), _volume),
    "persistentvolumeclaims": Layout(_claim_columns(), _claim),
    "storageclasses.storage.k8s.io": Layout(
        (
            NAME,
            Column("Provisioner", "StorageClass.provisioner"),
            Column("ReclaimPolicy", "StorageClass.reclaimPolicy"),
            Column("VolumeBindingMode", "StorageClass.volumeBindingMode"),
            Column("AllowVolumeExpansion", "StorageClass.allowVolumeExpansion"),
            AGE,
        ),
        _storage_class,
    ),
}
