"""Whether a volume satisfies a claim.

upstream: staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go,
pkg/controller/volume/persistentvolume/pv_controller.go#checkVolumeSatisfyClaim
"""

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume
from kcm_cli.machinery import quantity
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.planning.volumes.classes import class_of_claim, class_of_volume

FILESYSTEM = "Filesystem"
NO_ATTRIBUTES_CLASSES = "is not supported when the feature-gate VolumeAttributesClass is disabled"


def capacity(volume: PersistentVolume) -> Quantity:
    """The size of a volume; 0 where it is missing or invalid, so that one volume cannot stop all claims."""
    text = (volume.spec.capacity or {}).get("storage", "0")
    return quantity.parse(text) if quantity.is_quantity(text) else quantity.ZERO


def requested(claim: PersistentVolumeClaim) -> Quantity:
    """The size that a claim requests; 0 where it is missing."""
    resources = claim.spec.resources
    return quantity.parse(((resources.requests if resources is not None else None) or {}).get("storage", "0"))


def points_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is bound to this claim, or reserved for it by name."""
    ref = volume.spec.claim_ref
    if ref is None or (ref.namespace, ref.name) != (claim.namespace, claim.name):
        return False
    return ref.uid in ("", claim.uid)


def same_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both have volumeMode Filesystem, or both Block."""
    return (volume.spec.volume_mode or FILESYSTEM) == (claim.spec.volume_mode or FILESYSTEM)


def attributes_class(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    """Empty for none."""
    return obj.spec.volume_attributes_class_name or ""


def same_attributes_class(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return attributes_class(volume) == attributes_class(claim)


def has_access_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def satisfies(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume may be bound to a claim that does not name it."""
    return (
        not volume.deleting
        and same_mode(volume, claim)
        and same_attributes_class(volume, claim)
        and capacity(volume) >= requested(claim)
    )


def why_unsatisfied(volume: PersistentVolume, claim: PersistentVolumeClaim, *, attributes_classes: bool = True) -> str:
    """Why the claim that names a volume cannot be bound to it; empty where it can.

    ``attributes_classes``: there are classes of attributes (gate VolumeAttributesClass; off in an emulated release).
    """
    if volume.deleting:
        return f'the volume is marked for deletion "{volume.name}"'
    if capacity(volume).value() < requested(claim).value():
        return "requested PV is too small"
    if class_of_volume(volume) != class_of_claim(claim):
        return "storageClassName does not match"
    if not attributes_classes and (attributes_class(volume) or attributes_class(claim)):
        return f"volumeAttributesClassName {NO_ATTRIBUTES_CLASSES}"
    if not same_attributes_class(volume, claim):
        return "volumeAttributesClassName does not match"
    if not same_mode(volume, claim):
        return "incompatible volumeMode"
    return "" if has_access_modes(volume, claim) else "incompatible accessMode"
