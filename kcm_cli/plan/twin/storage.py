"""The storage drivers of the twin: provisioned volumes are available at once, and every attach and detach succeeds."""

from typing import Any

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_ATTACHMENTS
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import MERGE
from kcm_cli.planning.volumes.binding import provisioned_name
from kcm_cli.planning.volumes.classes import class_of_claim, waits_for_consumer
from kcm_cli.planning.volumes.names import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER_FINALIZER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
)
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.runtime.workqueue import WorkQueue
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.storage import plan
from kcm_cli.sandbox.storage.driver import set_finalizers
from kcm_cli.sandbox.work import work_on

STORAGE = "csi"
_ATTACHER = "external-attacher/"


class TwinStorage:
    """Keys are ``claim:``, ``volume:`` or ``attachment:`` with the object's key."""

    def __init__(self, means: Means) -> None:
        informers = means.informers
        self._client = means.connect(STORAGE)
        self._queue = WorkQueue("storage", means.clock)
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = informers.get(PERSISTENT_VOLUMES)
        self._classes = informers.get(STORAGE_CLASSES)
        self._attachments = informers.get(VOLUME_ATTACHMENTS)
        for prefix, informer in (
            ("claim", self._claims),
            ("volume", self._volumes),
            ("attachment", self._attachments),
        ):
            self._follow(prefix, informer)

    async def run(self) -> None:
        """Process keys until cancelled."""
        await work_on(self._queue, 4, self._sync)

    def _follow(self, prefix: str, informer: Any) -> None:
        def seen(obj: Object) -> None:
            self._queue.add(f"{prefix}:{obj.key}")

        informer.listen(on_add=seen, on_update=lambda _, obj: seen(obj))

    async def _sync(self, key: str) -> None:
        prefix, _, name = key.partition(":")
        try:
            if prefix == "claim":
                await self._claim(name)
            elif prefix == "volume":
                await self._volume(name)
            else:
                await self._attachment(name)
        except (AlreadyExists, NotFound):
            return  # the change queues the key again

    async def _claim(self, key: str) -> None:
        claim = self._claims.store.get(key)
        class_ = self._classes.store.get(class_of_claim(claim)) if claim is not None else None
        if claim is None or class_ is None or claim.deleting or claim.spec.volume_name:
            return
        asked = claim.annotations.get(STORAGE_PROVISIONER) or claim.annotations.get(BETA_STORAGE_PROVISIONER)
        if asked is None or (waits_for_consumer(class_) and SELECTED_NODE not in claim.annotations):
            return
        if self._volumes.store.get(provisioned_name(claim)) is None:
            await self._client.create(PERSISTENT_VOLUMES, "", _volume(plan.volume_doc(claim, class_, {}), asked, claim))

    async def _volume(self, name: str) -> None:
        volume = self._volumes.store.get(name)
        if volume is None:
            return
        if plan.releasable(volume):
            left = plan.without(volume.metadata.finalizers, PROVISIONER_FINALIZER)
            await set_finalizers(self._client, PERSISTENT_VOLUMES, volume, left)
        elif PROVISIONED_BY in volume.annotations and plan.is_over(volume):
            await self._client.delete(PERSISTENT_VOLUMES, "", name, uid=volume.uid)

    async def _attachment(self, name: str) -> None:
        attachment = self._attachments.store.get(name)
        if attachment is None:
            return
        if attachment.deleting:
            left = [one for one in attachment.metadata.finalizers if not one.startswith(_ATTACHER)]
            if len(left) != len(attachment.metadata.finalizers):
                await set_finalizers(self._client, VOLUME_ATTACHMENTS, attachment, left)
        elif not attachment.status.attached:
            status: Doc = {"status": {"attached": True}}
            await self._client.patch(VOLUME_ATTACHMENTS, "", name, status, content_type=MERGE, subresource="status")


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
