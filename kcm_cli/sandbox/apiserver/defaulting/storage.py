"""Defaults of claims and volumes.

Source: pkg/apis/core/v1/defaults.go.
"""

from kcm_cli.sandbox.apiserver.defaulting import resources, volumes
from kcm_cli.sandbox.apiserver.types import Tree


def claim(doc: Tree) -> None:
    """A PersistentVolumeClaim."""
    volumes.claim_spec(doc.setdefault("spec", {}))
    status = doc.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    resources.resource_list(status.get("capacity"))
    resources.resource_list(status.get("allocatedResources"))


def volume(doc: Tree) -> None:
    """A PersistentVolume."""
    spec = doc.setdefault("spec", {})
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    resources.resource_list(spec.get("capacity"))
    volumes.persistent_source(spec)
    status = doc.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
