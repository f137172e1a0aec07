"""CSI migration: the drivers that serve volumes of former in-tree plugins, annotations on volumes and claims, and the
finalizers of a volume's deleter.

upstream: staging/src/k8s.io/csi-translation-lib, pkg/volume/csimigration,
pkg/controller/volume/persistentvolume/pv_controller_base.go#updateMigrationAnnotations
"""

from collections.abc import Mapping

from kcm_cli.api.storage import PersistentVolume
from kcm_cli.planning.volumes.names import (
    BETA_STORAGE_PROVISIONER,
    IN_TREE,
    IN_TREE_FINALIZER,
    MIGRATED_TO,
    PROVISIONED_BY,
    PROVISIONER_FINALIZER,
    STORAGE_PROVISIONER,
)

DRIVERS: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The CSI drivers, by the name of the plugin that served their volumes in the tree."""


def migrated_plugin(volume: PersistentVolume) -> str:
    """The in-tree plugin that served a volume; empty for one that was never migrated."""
    spec = volume.spec
    sources = {
        "kubernetes.io/aws-ebs": spec.aws_elastic_block_store,
        "kubernetes.io/azure-disk": spec.azure_disk,
        "kubernetes.io/azure-file": spec.azure_file,
        "kubernetes.io/cinder": spec.cinder,
        "kubernetes.io/gce-pd": spec.gce_persistent_disk,
        "kubernetes.io/portworx-volume": spec.portworx_volume,
        "kubernetes.io/vsphere-volume": spec.vsphere_volume,
    }
    return next((plugin for plugin, source in sources.items() if source is not None), "")


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
    """The annotations with that of the driver that replaces a provisioner; without it if there is none."""
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

    Volumes that a plugin of this process created have the controller's, and never the external provisioner's. None is
    added to a volume that is being deleted, which the API server would reject.
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
