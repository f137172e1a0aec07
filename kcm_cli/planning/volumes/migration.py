"""Annotations of CSI migration on volumes and claims, and the finalizers of a volume's deleter.

upstream: pkg/controller/volume/persistentvolume/pv_controller_base.go#updateMigrationAnnotations
"""

from collections.abc import Mapping

from kcm_cli.api.storage import PersistentVolume
from kcm_cli.planning.csi_migration import DRIVERS
from kcm_cli.planning.volumes.names import (
    BETA_STORAGE_PROVISIONER,
    IN_TREE,
    IN_TREE_FINALIZER,
    MIGRATED_TO,
    PROVISIONED_BY,
    PROVISIONER_FINALIZER,
    STORAGE_PROVISIONER,
)


def provisioner_of(name: str) -> str:
    """The provisioner of a class: the CSI driver, where its in-tree plugin is migrated."""
    return DRIVERS.get(name, name)


def claim_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """The annotations that a claim should have."""
    return _annotations(annotations, annotations.get(STORAGE_PROVISIONER, annotations.get(BETA_STORAGE_PROVISIONER)))


def volume_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """The annotations that a volume should have."""
    return _annotations(annotations, annotations.get(PROVISIONED_BY))


def _annotations(annotations: Mapping[str, str], provisioner: str | None) -> Mapping[str, str]:
    """The driver to which the provisioner has been migrated; empty where it has not been."""
    if provisioner is None:
        return annotations
    driver = DRIVERS.get(provisioner)
    if driver is not None:
        return {**annotations, MIGRATED_TO: driver}
    if not annotations.get(MIGRATED_TO):
        return annotations
    return {key: value for key, value in annotations.items() if key != MIGRATED_TO}


def volume_finalizers(volume: PersistentVolume) -> tuple[str, ...]:
    """The finalizers that a volume should have.

    The controller's own stands on volumes that a plugin of this process made and will delete, the external
    provisioner's never on these. What is being deleted gets no more of them: the server would refuse that.
    """
    finalizers = volume.metadata.finalizers
    provisioner = volume.annotations.get(PROVISIONED_BY)
    if provisioner is None:
        return finalizers
    if provisioner in DRIVERS:
        return _without(finalizers, IN_TREE_FINALIZER)
    if not provisioner.startswith(IN_TREE):
        return finalizers
    policy = volume.spec.persistent_volume_reclaim_policy
    if policy == "Delete" and IN_TREE_FINALIZER not in finalizers and not volume.deleting:
        finalizers = (*finalizers, IN_TREE_FINALIZER)
    elif policy in ("Retain", "Recycle"):
        finalizers = _without(finalizers, IN_TREE_FINALIZER)
    return _without(finalizers, PROVISIONER_FINALIZER)


def _without(finalizers: tuple[str, ...], finalizer: str) -> tuple[str, ...]:
    return tuple(name for name in finalizers if name != finalizer)
