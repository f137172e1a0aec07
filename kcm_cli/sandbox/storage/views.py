"""Attachments of volumes, and the drivers of nodes, as the simulated storage driver reads them."""

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View


class AttachmentSource(View, frozen=True, gc=False):
    persistent_volume_name: str = ""


class AttachmentSpec(View, frozen=True, gc=False):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class AttachmentStatus(View, frozen=True, gc=False):
    attached: bool = False


class VolumeAttachment(Object, frozen=True, gc=False, kw_only=True):
    spec: AttachmentSpec = AttachmentSpec()
    status: AttachmentStatus = AttachmentStatus()


class CsiNode(Object, frozen=True, gc=False, kw_only=True):
    """Which drivers a node has."""

    spec: Doc = msgspec.field(default_factory=dict)


def _storage(plural: str) -> GVR:
    return GVR("storage.k8s.io", "v1", plural)


VOLUME_ATTACHMENTS = Resource(_storage("volumeattachments"), "VolumeAttachment", VolumeAttachment, False)
CSI_NODES = Resource(_storage("csinodes"), "CSINode", CsiNode, False)
CSI_DRIVERS = Resource(_storage("csidrivers"), "CSIDriver", CsiNode, False)
