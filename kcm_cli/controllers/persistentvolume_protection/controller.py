"""persistentvolume-protection-controller: a volume that is bound to a claim is not gone before it is free.

upstream: pkg/controller/volume/pvprotection
"""

from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.planning.protection import is_held, lacks, protection, release

FINALIZER = "kubernetes.io/pv-protection"


def build(context: ControllerContext) -> Runnable:
    controller = VolumeProtectionController(context)
    return context.worker(controller.queue, controller.sync, count=1, waits_for=(controller.volumes,))


class VolumeProtectionController:
    """Keys are names of volumes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.queue = context.queue("pvprotection")
        self.volumes = context.informers.get(PERSISTENT_VOLUMES)
        self.volumes.listen(on_add=self._changed, on_update=lambda old, new: self._changed(new))

    async def sync(self, key: str) -> None:
        volume = self.volumes.store.get(key)
        if volume is None:
            return
        if is_held(volume, FINALIZER) and volume.status.phase != "Bound":
            await writes.update(self._client, release(PERSISTENT_VOLUMES, volume, FINALIZER))
        elif lacks(volume, FINALIZER):
            await writes.update(self._client, protection(PERSISTENT_VOLUMES, volume, FINALIZER))

    def _changed(self, volume: PersistentVolume) -> None:
        if is_held(volume, FINALIZER) or lacks(volume, FINALIZER):
            self.queue.add(volume.name)
