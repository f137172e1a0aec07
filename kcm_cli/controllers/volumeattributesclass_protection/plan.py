"""Which VolumeAttributesClasses a claim or a volume uses.

upstream: pkg/controller/volume/vacprotection/vac_protection_controller.go
"""

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume

FINALIZER = "kubernetes.io/vac-protection"


def classes_of_claim(claim: PersistentVolumeClaim) -> frozenset[str]:
    """The class that a claim asks for, the one that it has, and the one that it is on the way to."""
    status = claim.status
    names = {claim.spec.volume_attributes_class_name, status.current_volume_attributes_class_name}
    if status.modify_volume_status is not None:
        names.add(status.modify_volume_status.target_volume_attributes_class_name)
    return frozenset(name for name in names if name)


def classes_of_volume(volume: PersistentVolume) -> frozenset[str]:
    name = volume.spec.volume_attributes_class_name
    return frozenset((name,)) if name else frozenset()
