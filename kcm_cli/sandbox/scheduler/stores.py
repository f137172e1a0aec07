"""The scheduler's stores about volumes."""

import msgspec

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import CsiDriver, PersistentVolume, StorageClass, VolumeAttachment
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.storage.views import CsiNode, CsiStorageCapacity

BY_NODE = "node"


def attachments() -> Store[VolumeAttachment]:
    """A store of attachments with its index."""
    store: Store[VolumeAttachment] = Store()
    index_attachments(store)
    return store


def index_attachments(store: Store[VolumeAttachment]) -> None:
    """Index attachments by node."""
    store.add_index(BY_NODE, lambda attachment: (attachment.spec.node_name,))


class Volumes(msgspec.Struct):
    """The stores, and assumed volumes: ``promised`` by name, ``selected`` nodes by claim."""

    claims: Store[PersistentVolumeClaim]
    volumes: Store[PersistentVolume]
    classes: Store[StorageClass]
    csi_nodes: Store[CsiNode] = msgspec.field(default_factory=Store)
    attachments: Store[VolumeAttachment] = msgspec.field(default_factory=attachments)
    drivers: Store[CsiDriver] = msgspec.field(default_factory=Store)
    capacities: Store[CsiStorageCapacity] = msgspec.field(default_factory=Store)
    promised: set[str] = msgspec.field(default_factory=set)
    selected: dict[str, str] = msgspec.field(default_factory=dict)
