"""The storage drivers of the twin: provisioned volumes are available at once, and every attach and detach succeeds."""

from collections.abc import Awaitable, Callable, Mapping

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.volumes.binding import provisioned_name
from kcm_cli.planning.volumes.classes import class_of_claim, waits_for_consumer
from kcm_cli.planning.volumes.names import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
)
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.storage import plan
from kcm_cli.sandbox.storage.worker import ATTACHMENT, CLAIM, VOLUME, StorageWorker

STORAGE = "csi"
_ATTACHER = "external-attacher/"


class TwinStorage(StorageWorker):
    """See the module."""

    def __init__(self, means: Means) -> None:
        super().__init__(means, STORAGE)

    def syncs(self) -> Mapping[str, Callable[[str], Awaitable[None]]]:
        return {CLAIM: self._claim, VOLUME: self._volume, ATTACHMENT: self._attachment}

    async def _claim(self, key: str) -> None:
        claim = self._claims.store.get(key)
        class_ = self._classes.store.get(class_of_claim(claim)) if claim is not None else None
        if claim is None or class_ is None or claim.deleting or claim.spec.volume_name:
            return
        asked = claim.annotations.get(STORAGE_PROVISIONER) or claim.annotations.get(BETA_STORAGE_PROVISIONER)
        if asked is None or (waits_for_consumer(class_) and SELECTED_NODE not in claim.annotations):
            return
        if plan.obstacle(claim, class_) is None and self._volumes.store.get(provisioned_name(claim)) is None:
            await self._make(PERSISTENT_VOLUMES, _volume(plan.volume_doc(claim, class_, {}), asked, claim))

    async def _volume(self, name: str) -> None:
        await self._release(name, deletes=lambda volume: PROVISIONED_BY in volume.annotations)

    async def _attachment(self, name: str) -> None:
        attachment = self._attachments.store.get(name)
        if attachment is None:
            return
        if attachment.deleting:
            left = [one for one in attachment.metadata.finalizers if not one.startswith(_ATTACHER)]
            if len(left) != len(attachment.metadata.finalizers):
                await self._set_finalizers(VOLUME_ATTACHMENTS, attachment, left)
        elif not attachment.status.attached:
            await self._attached(attachment)


def _volume(doc: Doc, provisioner: str, claim: PersistentVolumeClaim) -> Doc:
    """The sandbox driver's volume, as the provisioner would create it."""
    metadata, spec = doc["metadata"], doc["spec"]
    assert isinstance(metadata, dict) and isinstance(spec, dict)
    driver = {"driver": provisioner, "volumeHandle": provisioned_name(claim), "fsType": "ext4"}
    return {
        **doc,
        "metadata": {**metadata, "annotations": {PROVISIONED_BY: provisioner}},
        "spec": {**spec, "csi": driver},
    }
