"""Volumes and their classes, as the controllers, the scheduler and the simulated storage driver read them."""

import msgspec

from kcm_cli.api.core import FlexSource, NodeSelector, ObjectReference
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View


class VolumeNodeAffinity(View, frozen=True, gc=False):
    required: NodeSelector | None = None


class CsiSource(View, frozen=True, gc=False):
    driver: str = ""
    volume_handle: str = ""


class HostPathSource(View, frozen=True, gc=False):
    path: str = ""


class NfsSource(View, frozen=True, gc=False):
    server: str = ""
    path: str = ""


class PersistentVolumeSpec(View, frozen=True, gc=False):
    capacity: dict[str, str] | None = None
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    persistent_volume_reclaim_policy: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    aws_elastic_block_store: Doc | None = None
    azure_disk: Doc | None = None
    azure_file: Doc | None = None
    cinder: Doc | None = None
    fc: Doc | None = None
    gce_persistent_disk: Doc | None = None
    iscsi: Doc | None = None
    portworx_volume: Doc | None = None
    vsphere_volume: Doc | None = None
    host_path: HostPathSource | None = None
    nfs: NfsSource | None = None
    flex_volume: FlexSource | None = None


class PersistentVolumeStatus(View, frozen=True, gc=False):
    phase: str = ""


class PersistentVolume(Object, frozen=True, gc=False, kw_only=True):
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class TopologyRequirement(View, frozen=True, gc=False):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(View, frozen=True, gc=False):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Object, frozen=True, gc=False, kw_only=True):
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allow_volume_expansion: bool | None = None
    mount_options: tuple[str, ...] = ()
    parameters: dict[str, str] | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


PERSISTENT_VOLUMES = Resource(
    GVR("", "v1", "persistentvolumes"), "PersistentVolume", PersistentVolume, namespaced=False, keeps_raw=True
)
STORAGE_CLASSES = Resource(GVR("storage.k8s.io", "v1", "storageclasses"), "StorageClass", StorageClass, False)


class VolumeAttributesClass(Object, frozen=True, gc=False, kw_only=True):
    """A class, with metadata only."""


VOLUME_ATTRIBUTES_CLASSES = Resource(
    GVR("storage.k8s.io", "v1", "volumeattributesclasses"),
    "VolumeAttributesClass",
    VolumeAttributesClass,
    namespaced=False,
    keeps_raw=True,
)


class AttachmentSource(View, frozen=True, gc=False):
    persistent_volume_name: str | None = None


class AttachmentSpec(View, frozen=True, gc=False):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeError(View, frozen=True, gc=False):
    message: str = ""


class AttachmentStatus(View, frozen=True, gc=False):
    attached: bool = False
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Object, frozen=True, gc=False, kw_only=True):
    spec: AttachmentSpec = AttachmentSpec()
    status: AttachmentStatus = AttachmentStatus()


class CsiDriverSpec(View, frozen=True, gc=False):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    se_linux_mount: bool | None = None


class CsiDriver(Object, frozen=True, gc=False, kw_only=True):
    spec: CsiDriverSpec = CsiDriverSpec()


VOLUME_ATTACHMENTS = Resource(
    GVR("storage.k8s.io", "v1", "volumeattachments"), "VolumeAttachment", VolumeAttachment, namespaced=False
)
CSI_DRIVERS = Resource(GVR("storage.k8s.io", "v1", "csidrivers"), "CSIDriver", CsiDriver, namespaced=False)
