"""Options of volume plugins: for the persistentvolume binder, which provisions and recycles, and for attach-detach.

upstream: pkg/controller/volume/persistentvolume/config#VolumeConfiguration
"""

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import BOOL, INT32, STRING


class VolumeConfig(OptionGroup):
    """VolumeConfiguration."""

    enable_host_path_provisioning: bool = option(
        BOOL,
        False,
        flag="enable-hostpath-provisioner",
        key="EnableHostPathProvisioning",
        help=(
            "Provision hostPath volumes if there is no cloud provider. For tests on a single node "
            "only: data may be lost."
        ),
    )
    enable_dynamic_provisioning: bool = option(
        BOOL,
        True,
        flag="enable-dynamic-provisioning",
        key="EnableDynamicProvisioning",
        help="Provision volumes for claims if the provisioner supports it.",
    )
    recycler_maximum_retry: int = option(
        INT32,
        3,
        key="PersistentVolumeRecyclerConfiguration.MaximumRetry",
        help=("No effect, as in kube-controller-manager: scrubbing a volume is retried until it succeeds."),
    )
    recycler_minimum_timeout_nfs_s: int = option(
        INT32,
        300,
        flag="pv-recycler-minimum-timeout-nfs",
        key="PersistentVolumeRecyclerConfiguration.MinimumTimeoutNFS",
        unit="s",
        help="Shortest activeDeadlineSeconds of a recycler pod for an NFS volume.",
    )
    recycler_pod_template_file_nfs: str = option(
        STRING,
        "",
        flag="pv-recycler-pod-template-filepath-nfs",
        key="PersistentVolumeRecyclerConfiguration.PodTemplateFilePathNFS",
        help="File with the pod template for recycling NFS volumes.",
    )
    recycler_increment_timeout_nfs_s: int = option(
        INT32,
        30,
        flag="pv-recycler-increment-timeout-nfs",
        key="PersistentVolumeRecyclerConfiguration.IncrementTimeoutNFS",
        unit="s",
        help=("Seconds per Gi that are added to the activeDeadlineSeconds of a recycler pod for an NFS volume."),
    )
    recycler_pod_template_file_host_path: str = option(
        STRING,
        "",
        flag="pv-recycler-pod-template-filepath-hostpath",
        key="PersistentVolumeRecyclerConfiguration.PodTemplateFilePathHostPath",
        help="File with the pod template for recycling hostPath volumes. For development only.",
    )
    recycler_minimum_timeout_host_path_s: int = option(
        INT32,
        60,
        flag="pv-recycler-minimum-timeout-hostpath",
        key="PersistentVolumeRecyclerConfiguration.MinimumTimeoutHostPath",
        unit="s",
        help=("Shortest activeDeadlineSeconds of a recycler pod for a hostPath volume. For development only."),
    )
    recycler_increment_timeout_host_path_s: int = option(
        INT32,
        30,
        flag="pv-recycler-timeout-increment-hostpath",
        key="PersistentVolumeRecyclerConfiguration.IncrementTimeoutHostPath",
        unit="s",
        help=(
            "Seconds per Gi that are added to the activeDeadlineSeconds of a recycler pod for a "
            "hostPath volume. For development only."
        ),
    )
    flex_volume_plugin_dir: str = option(
        STRING,
        "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
        flag="flex-volume-plugin-dir",
        key="FlexVolumePluginDir",
        help="Directory of FlexVolume drivers that attach volumes.",
    )
