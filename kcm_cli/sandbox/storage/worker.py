"""What storage drivers share: caches of claims, volumes and attachments, whose changes are keys of one queue."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.resource import Resource
from kcm_cli.api.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_ATTACHMENTS, VolumeAttachment
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, split_key
from kcm_cli.planning.actions import MERGE
from kcm_cli.planning.volumes.names import PROVISIONER_FINALIZER
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.storage import plan
from kcm_cli.sandbox.work import work_on

WORKERS = 4
CLAIM, VOLUME, ATTACHMENT = "claim:", "volume:", "attachment:"


class StorageWorker:
    """Keys are a prefix and the key of an object. component: the name of the client. The informers must run, too."""

    def __init__(self, means: Means, component: str) -> None:
        informers = means.informers
        self._client = means.connect(component)
        self._queue = means.queue("storage")
        self._record = means.record(component, "")
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = informers.get(PERSISTENT_VOLUMES)
        self._classes = informers.get(STORAGE_CLASSES)
        self._attachments = informers.get(VOLUME_ATTACHMENTS)
        self._follow(self._claims, CLAIM)
        self._follow(self._volumes, VOLUME)
        self._follow(self._attachments, ATTACHMENT)

    async def run(self) -> None:
        """Process keys until cancelled."""
        await work_on(self._queue, WORKERS, self._sync, self._record)

    def syncs(self) -> Mapping[str, Callable[[str], Awaitable[None]]]:
        """What syncs the keys with each prefix."""
        raise NotImplementedError

    def _follow(self, informer: AnyInformer, prefix: str) -> None:
        def seen(obj: Object) -> None:
            self._queue.add(f"{prefix}{obj.key}")

        informer.listen(on_add=seen, on_update=lambda _, obj: seen(obj))

    async def _sync(self, key: str) -> None:
        prefix, _, name = key.partition(":")
        with suppress(NotFound):  # what is gone needs no write
            await self.syncs()[f"{prefix}:"](name)

    async def _make(self, resource: Resource[Any], doc: Doc) -> bool:
        """Create an object; returns False if it exists."""
        try:
            await self._client.create(resource, "", doc)
        except AlreadyExists:
            return False
        return True

    async def _release(self, name: str, *, deletes: Callable[[Any], bool]) -> None:
        """Remove the provisioner's finalizer from a volume that is deleted; delete one that is over, if it is to be."""
        volume = self._volumes.store.get(name)
        if volume is None:
            return
        if plan.releasable(volume):
            left = plan.without(volume.metadata.finalizers, PROVISIONER_FINALIZER)
            await self._set_finalizers(PERSISTENT_VOLUMES, volume, left)
        elif deletes(volume) and plan.is_over(volume):
            await self._client.delete(PERSISTENT_VOLUMES, "", name, uid=volume.uid)

    async def _attached(self, attachment: VolumeAttachment) -> None:
        patch: Doc = {"metadata": {"uid": attachment.uid}, "status": {"attached": True}}
        await self._client.patch(
            VOLUME_ATTACHMENTS, "", attachment.name, patch, content_type=MERGE, subresource="status"
        )

    async def _set_finalizers(self, resource: Resource[Any], obj: Object, finalizers: list[str] | None) -> None:
        """Write the finalizers of this version of an object. None: no finalizers."""
        patch: Doc = {"metadata": {"finalizers": finalizers, "resourceVersion": obj.metadata.resource_version}}
        namespace, name = split_key(obj.key)
        await self._client.patch(resource, namespace, name, patch, content_type=MERGE)
