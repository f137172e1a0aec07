"""Volumes and claims to decide on."""

from typing import Any

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES, PersistentVolume, StorageClass
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import changed


def volume(name: str = "v", size: str = "1Gi", *, phase: str = "Available", **spec: Any) -> PersistentVolume:
    """``metadata`` joins its name; everything else is its spec."""
    metadata = {"name": name, "resourceVersion": "1", **spec.pop("metadata", {})}
    body = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "gold", **spec}
    doc = {"metadata": metadata, "spec": body, "status": {"phase": phase}}
    return PERSISTENT_VOLUMES.decode(codec.encode(doc))


def claim(
    name: str = "c", size: str = "1Gi", *, status: dict[str, Any] | None = None, **spec: Any
) -> PersistentVolumeClaim:
    metadata = {
        "name": name,
        "namespace": "d",
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        **spec.pop("metadata", {}),
    }
    resources = {"requests": {"storage": size}}
    body = {"resources": resources, "accessModes": ["ReadWriteOnce"], "storageClassName": "gold", **spec}
    doc = {"metadata": metadata, "spec": body, "status": status or {"phase": "Pending"}}
    return PERSISTENT_VOLUME_CLAIMS.decode(codec.encode(doc))


def storage_class(name: str, **fields: Any) -> StorageClass:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return STORAGE_CLASSES.decode(codec.encode({"metadata": metadata, **fields}))


def with_changes(obj: Any, changes: Any) -> Any:
    """The object as it is after a write."""
    resource = PERSISTENT_VOLUMES if isinstance(obj, PersistentVolume) else PERSISTENT_VOLUME_CLAIMS
    return resource.decode(codec.encode(changed(codec.decode_doc(obj.raw), changes)))


def ref(name: str = "c", **fields: str) -> dict[str, str]:
    """A pointer to a claim."""
    return {"namespace": "d", "name": name, **fields}
