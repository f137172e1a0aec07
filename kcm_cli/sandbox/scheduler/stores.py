"""What the scheduler knows of volumes."""

from dataclasses import dataclass, field

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume, StorageClass, VolumeAttachment
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.storage.views import CsiNode

BY_NODE = "node"


def attachments() -> Store[VolumeAttachment]:
    """A store of attachments, with the index that is needed."""
    store: Store[VolumeAttachment] = Store()
    index_attachments(store)
    return store


def index_attachments(store: Store[VolumeAttachment]) -> None:
    """Have attachments found by their node."""
    store.add_index(BY_NODE, lambda attachment: (attachment.spec.node_name,))


@dataclass(slots=True)
class Volumes:
    """The listers, and what is promised to pods on their way: volumes by name, nodes by claim."""

    claims: Store[PersistentVolumeClaim]
    volumes: Store[PersistentVolume]
    classes: Store[StorageClass]
    csi_nodes: Store[CsiNode] = field(default_factory=Store)
    attachments: Store[VolumeAttachment] = field(default_factory=attachments)
    promised: set[str] = field(default_factory=set)
    selected: dict[str, str] = field(default_factory=dict)
