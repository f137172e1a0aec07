"""persistentvolume-expander-controller: says of claims that are to grow who will see to it.

Volumes are grown by the resizers of their CSI drivers. For volumes of kinds that were moved to such a driver the
claim is annotated with the driver's name, by which its resizer knows them.

upstream: pkg/controller/volume/expand
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.controllers.persistentvolume_expander import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.transport import TransportError

WORKERS = 10


def build(context: ControllerContext) -> Runnable:
    controller = ExpandController(context)
    return context.worker(controller.queue, controller.sync, count=WORKERS, waits_for=(controller.claims,))


class ExpandController:
    """Keys are bound claims."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._recorder = context.recorder_for(plan.SOURCE)
        self.queue = context.queue("volume_expand")
        self.claims = context.informers.get(PERSISTENT_VOLUME_CLAIMS)
        self.claims.listen(on_add=self._claim, on_update=self._updated)

    async def sync(self, key: str) -> None:
        claim = self.claims.store.get(key)
        if claim is None:
            return
        volume = await self._client.get(PERSISTENT_VOLUMES, "", claim.spec.volume_name)
        if not plan.must_grow(claim, volume):
            return
        self._recorder.emit(plan.waiting(claim, volume))
        naming = plan.resizer(claim, volume)
        if naming is None:
            return
        try:
            await writes.patch(self._client, naming)
        except (ApiError, TransportError) as error:
            self._recorder.emit(plan.not_named(claim, error))
            raise

    # -- events

    def _claim(self, claim: PersistentVolumeClaim) -> None:
        if claim.status.phase == "Bound" and claim.spec.volume_name:
            self.queue.add(claim.key)

    def _updated(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> None:
        if plan.grew(old, new):
            self._claim(new)
