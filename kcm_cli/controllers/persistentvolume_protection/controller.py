"""persistentvolume-protection-controller: a volume that is bound to a claim is not gone before it is free.

upstream: pkg/controller/volume/pvprotection
"""

from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, only
from kcm_cli.planning.protection import is_held, lacks, protection, release

FINALIZER = "kubernetes.io/pv-protection"


class VolumeProtectionController:
    """Keys are names of volumes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._volumes = context.cache(PERSISTENT_VOLUMES).store

    async def sync(self, key: str) -> None:
        volume = self._volumes.get(key)
        if volume is None:
            return
        if is_held(volume, FINALIZER) and volume.status.phase != "Bound":
            await writes.update(self._client, release(PERSISTENT_VOLUMES, volume, FINALIZER))
        elif lacks(volume, FINALIZER):
            await writes.update(self._client, protection(PERSISTENT_VOLUMES, volume, FINALIZER))


def needs_work(volume: PersistentVolume) -> bool:
    """Whether its finalizer is to be set, or may have to go."""
    return is_held(volume, FINALIZER) or lacks(volume, FINALIZER)


CONTROLLER = Controller(
    VolumeProtectionController,
    Queue("pvprotection", Watch(PERSISTENT_VOLUMES, changed=only(needs_work)), sync=VolumeProtectionController.sync),
)
