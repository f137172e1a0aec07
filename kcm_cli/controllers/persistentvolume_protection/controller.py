"""persistentvolume-protection-controller: keeps a deleted volume, by a finalizer, while it is bound to a claim.

upstream: pkg/controller/volume/pvprotection
"""

from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, only, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.planning.protection import needs_work, plan

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
        update = plan(PERSISTENT_VOLUMES, volume, FINALIZER, used=volume.status.phase == "Bound")
        if update is not None:
            await writes.send(self._client, update)


CONTROLLER = Controller(
    VolumeProtectionController,
    Queue(
        "pvprotection",
        Watch(PERSISTENT_VOLUMES, changed=only(lambda volume: needs_work(volume, FINALIZER))),
        sync=VolumeProtectionController.sync,
        failures=unhandled("PV {key} failed with : {error}"),
    ),
    announces=starting("PV protection controller"),
)
