"""Attaches and detaches volumes. For CSI volumes it writes VolumeAttachments, which the external attachers of their
drivers handle.

Volumes without a driver need no work: kubelets attach them when they mount them.

upstream: pkg/volume/csi/csi_attacher.go
"""

import asyncio
from collections.abc import Callable

from kcm_cli.api.storage import VOLUME_ATTACHMENTS, VolumeAttachment
from kcm_cli.engine.controller import Keys
from kcm_cli.engine.door import Door
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.volumes.attachable import AttachableVolume, attachment_name
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Informer

TIMEOUT_S = 120.0
_ATTACH_FAILED = "kubernetes.io/csi: attacher.Attach failed: {error}"
_DELETE_FAILED = "kubernetes.io/csi: detacher.Detach failed to delete VolumeAttachment [{name}]: {error}"
_UNKNOWN = "kubernetes.io/csi: detacher.Detach failed to look up VolumeAttachment [{name}]: {error}"


class AttachError(SyncError):
    """A volume could not be attached or detached; the text is for Events."""


class Attacher:
    """Writes VolumeAttachments, and waits for their status in the cache."""

    def __init__(self, client: Door, attachments: Informer[VolumeAttachment]) -> None:
        self._client = client
        self._attachments = attachments
        self._waiting: dict[str, set[asyncio.Event]] = {}

    async def attach(self, volume: AttachableVolume, node: str) -> None:
        """Attach a volume to a node. Returns when the attacher reports it as attached. Raises AttachError."""
        if not volume.driver:
            return
        name = attachment_name(volume.driver, volume.handle, node)
        if self._attachments.store.get(name) is None:
            await self._create(name, volume, node)
        text = f"timed out waiting for external-attacher of {volume.driver} CSI driver to attach volume {volume.handle}"
        await self._until(name, _is_attached, text)

    async def detach(self, driver: str, handle: str, node: str) -> None:
        """Detach a volume from a node. Returns when its VolumeAttachment is deleted. Raises AttachError."""
        if not driver:
            return
        name = attachment_name(driver, handle, node)
        try:
            await self._client.delete(VOLUME_ATTACHMENTS, "", name, reason=f"no pod on node {node} needs the volume")
        except NotFound:
            return
        except RequestError as error:
            raise AttachError(_DELETE_FAILED.format(name=name, error=error)) from error
        since = 0 if self._attachments.store.get(name) is not None else await self._version(name)
        text = f"timed out waiting for external-attacher of unknown CSI driver to detach volume {handle}"
        await self._until(name, lambda shown: _is_detached(shown) and self._shows(since), text)

    async def find(self, volume: AttachableVolume, node: str) -> VolumeAttachment | None:
        """The VolumeAttachment of a volume, by the cache or, if that has none, by the API server. Raises
        RequestError."""
        name = attachment_name(volume.driver, volume.handle, node)
        return self._attachments.store.get(name) or await self._client.find(VOLUME_ATTACHMENTS, "", name)

    async def _create(self, name: str, volume: AttachableVolume, node: str) -> None:
        source: Doc = {"persistentVolumeName": volume.name}
        if volume.spec is not None:
            source = {"inlineVolumeSpec": volume.spec}
        spec = {"attacher": volume.driver, "nodeName": node, "source": source}
        body = {"apiVersion": VOLUME_ATTACHMENTS.api_version, "kind": VOLUME_ATTACHMENTS.kind}
        try:
            doc: Doc = {**body, "metadata": {"name": name}, "spec": spec}
            await self._client.create(VOLUME_ATTACHMENTS, "", doc, reason=f"pods on node {node} need the volume")
        except AlreadyExists:
            return  # the cache is behind
        except RequestError as error:
            raise AttachError(_ATTACH_FAILED.format(error=error)) from error

    async def _version(self, name: str) -> int:
        """The version of a VolumeAttachment that the cache does not have; 0 if it does not exist on the API server
        either."""
        try:
            known = await self._client.find(VOLUME_ATTACHMENTS, "", name)
        except RequestError as error:
            raise AttachError(_UNKNOWN.format(name=name, error=error)) from error
        return 0 if known is None else known.version

    def _shows(self, version: int) -> bool:
        """Whether the cache shows this version."""
        return not self._attachments.progress.behind(version)

    async def _until(self, name: str, done: Callable[[VolumeAttachment | None], bool], timed_out: str) -> None:
        changed = asyncio.Event()
        waiting = self._waiting.setdefault(name, set())
        waiting.add(changed)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not done(self._attachments.store.get(name)):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise AttachError(timed_out) from None
        finally:
            waiting.discard(changed)
            if not waiting:
                self._waiting.pop(name, None)

    def changed(self, attachment: VolumeAttachment) -> Keys:
        """Wake the operations that wait for an attachment; no key is queued."""
        for waiting in self._waiting.get(attachment.name, ()):
            waiting.set()
        return ()


def _is_attached(attachment: VolumeAttachment | None) -> bool:
    if attachment is None:
        return False  # just created, and not in the cache yet
    if attachment.deleting:
        raise AttachError("volume attachment is being deleted")
    if attachment.status.attached:
        return True
    if attachment.status.attach_error is not None:
        raise AttachError(attachment.status.attach_error.message)
    return False


def _is_detached(attachment: VolumeAttachment | None) -> bool:
    if attachment is None:
        return True
    if attachment.status.detach_error is not None:
        raise AttachError(attachment.status.detach_error.message)
    return False
