"""The changes that bind a volume and a claim to each other; empty where they are written already.

A binding takes four writes: the volume's claimRef, the volume's phase, the claim's volumeName, the claim's status. Each
is decided from the current objects, so that a process that takes over, or repeats a write whose answer was lost, writes
only what is missing.

upstream: staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go#GetBindVolumeToClaim,
pkg/controller/volume/persistentvolume/pv_controller.go#bind, unbindVolume
"""

from collections.abc import Mapping

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import ABSENT, Path, Value
from kcm_cli.planning.volumes.matching import points_to
from kcm_cli.planning.volumes.migration import claim_annotations, volume_annotations, volume_finalizers
from kcm_cli.planning.volumes.names import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PRE_RESIZE_CAPACITY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    YES,
)

Changes = Mapping[Path, Value]
NONE: Changes = {}
_REF: Path = ("spec", "claimRef")
_ANNOTATIONS: Path = ("metadata", "annotations")


class NoCapacity(Exception):
    """The volume has no capacity, and cannot be bound."""

    reason = "NoCapacity"


def claim_ref(claim: PersistentVolumeClaim) -> Doc:
    """The claimRef of a volume."""
    return {
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "apiVersion": "v1",
        "resourceVersion": claim.metadata.resource_version,
    }


def provisioned_name(claim: PersistentVolumeClaim) -> str:
    """The name of the volume that is provisioned for a claim. All provisioners use the same name."""
    return f"pvc-{claim.uid}"


def volume_pointer(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Changes:
    """Sets claimRef; if it was absent, marks it bound by the controller."""
    changes: dict[Path, Value] = {}
    ref = volume.spec.claim_ref
    if ref is None or not points_to(volume, claim) or ref.uid != claim.uid:
        changes[_REF] = claim_ref(claim)
    if not points_to(volume, claim) and BOUND_BY_CONTROLLER not in volume.annotations:
        changes[*_ANNOTATIONS, BOUND_BY_CONTROLLER] = YES
    return changes


def volume_phase(volume: PersistentVolume, phase: str, message: str = "") -> Changes:
    if volume.status.phase == phase:
        return NONE
    return {("status", "phase"): phase, ("status", "message"): message or ABSENT}


def claim_pointer(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Changes:
    """Sets volumeName and the annotation of a completed binding.

    A volumeName that the user did not set is marked as the controller's.
    """
    changes: dict[Path, Value] = {}
    if claim.spec.volume_name != volume.name:
        changes["spec", "volumeName"] = volume.name
        if BOUND_BY_CONTROLLER not in claim.annotations:
            changes[*_ANNOTATIONS, BOUND_BY_CONTROLLER] = YES
    if BIND_COMPLETED not in claim.annotations:
        changes[*_ANNOTATIONS, BIND_COMPLETED] = YES
    return changes


def unbound_status(claim: PersistentVolumeClaim, phase: str) -> Changes:
    """The status of an unbound claim: Pending or Lost."""
    status = claim.status
    changes: dict[Path, Value] = {}
    if status.phase != phase:
        changes["status", "phase"] = phase
    if status.access_modes:
        changes["status", "accessModes"] = ABSENT
    if status.capacity is not None:
        changes["status", "capacity"] = ABSENT
    if status.current_volume_attributes_class_name is not None:
        changes["status", "currentVolumeAttributesClassName"] = ABSENT
    return changes


def bound_status(claim: PersistentVolumeClaim, volume: PersistentVolume, *, attributes_classes: bool = True) -> Changes:
    """The status of a bound claim. Raises NoCapacity.

    Capacity and attributes class are copied from the volume when the claim becomes bound; later the resizer writes
    them. ``attributes_classes``: whether the class is written at all.
    """
    status, spec = claim.status, volume.spec
    changes: dict[Path, Value] = {}
    if status.access_modes != spec.access_modes:
        changes["status", "accessModes"] = list(spec.access_modes) or ABSENT
    if status.phase == "Bound":
        return changes
    changes["status", "phase"] = "Bound"
    changes |= _capacity(claim, volume)
    attributes = spec.volume_attributes_class_name
    if attributes_classes and status.phase == "Pending" and status.current_volume_attributes_class_name != attributes:
        changes["status", "currentVolumeAttributesClassName"] = ABSENT if attributes is None else attributes
    return changes


def _capacity(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Changes:
    has, known = volume.spec.capacity or {}, claim.status.capacity or {}
    if "storage" not in has:
        raise NoCapacity(f'PersistentVolume "{volume.name}" is without a storage capacity')
    before = volume.annotations.get(PRE_RESIZE_CAPACITY)
    if before is not None:
        return {("status", "capacity", "storage"): before if quantity.is_quantity(before) else has["storage"]}
    if "storage" in known and quantity.parse(known["storage"]) == quantity.parse(has["storage"]):
        return NONE
    return {("status", "capacity"): dict(has)}


def is_complete(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both are bound to each other and all four writes are done."""
    ref = volume.spec.claim_ref
    if ref is None or ref.uid != claim.uid or claim.status.phase != "Bound" or volume.status.phase != "Bound":
        return False
    written = not claim_pointer(claim, volume) and not volume_pointer(volume, claim)
    return written and not bound_status(claim, volume) and not claim_migration(claim)


def release(volume: PersistentVolume) -> Changes:
    """Undo a binding. A claimRef that a user wrote is kept without its uid."""
    if BOUND_BY_CONTROLLER not in volume.annotations:
        return {(*_REF, "uid"): ABSENT}
    left = {key: value for key, value in volume.annotations.items() if key != BOUND_BY_CONTROLLER}
    return {_REF: ABSENT, **_annotations(volume, left)}


def claim_migration(claim: PersistentVolumeClaim) -> Changes:
    """Sets the claim's annotation of the CSI driver that replaced its provisioner."""
    return _annotations(claim, claim_annotations(claim.annotations))


def volume_migration(volume: PersistentVolume) -> Changes:
    """Sets the volume's annotation of the CSI driver that replaced its plugin, and the finalizers of its deleter."""
    changes = dict(_annotations(volume, volume_annotations(volume.annotations)))
    finalizers = volume_finalizers(volume)
    if finalizers != volume.metadata.finalizers:
        changes["metadata", "finalizers"] = list(finalizers) or ABSENT
    return changes


def claim_provisioner(claim: PersistentVolumeClaim, provisioner: str) -> Changes:
    """Sets the claim's annotations that ask this provisioner for a volume."""
    if claim.annotations.get(STORAGE_PROVISIONER) == provisioner:
        return NONE
    asked = {**claim.annotations, BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
    return _annotations(claim, claim_annotations(asked))


def without_node(claim: PersistentVolumeClaim) -> Changes:
    """Removes the selected node, so that the scheduler chooses again; empty where there is none."""
    return _annotations(claim, {key: value for key, value in claim.annotations.items() if key != SELECTED_NODE})


def _annotations(obj: Object, wanted: Mapping[str, str]) -> Changes:
    if dict(obj.annotations) == dict(wanted):
        return NONE
    return {_ANNOTATIONS: dict(wanted) or ABSENT}
