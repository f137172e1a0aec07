"""CSI migration: the CSI drivers that serve volumes of former in-tree plugins.

upstream: staging/src/k8s.io/csi-translation-lib, pkg/volume/csimigration
"""

from collections.abc import Mapping

from kcm_cli.api.storage import PersistentVolume

DRIVERS: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""By the name of the plugin that served them in the tree."""


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
