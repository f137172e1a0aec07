"""persistentvolume-expander-controller: annotates claims that are to be expanded with the resizer of their volumes.

External resizers of CSI drivers expand the volumes. For a volume that was migrated to such a driver, the claim is
annotated with the driver's name. FlexVolume volumes are expanded on their nodes, which read the request from the claim
and the volume.

upstream: pkg/controller/volume/expand
"""

import logging

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, FlexSource, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.controllers.persistentvolume_expander import plan
from kcm_cli.controllers.persistentvolume_expander.plan import Step
from kcm_cli.controllers.shared.storage_operations import StorageOperations
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Patch
from kcm_cli.planning.volumes.names import PRE_RESIZE_CAPACITY
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

WORKERS = 10
OPERATION = "expand_volume"


class ExpandController:
    """Keys are bound claims."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recovers = context.gates.enabled("RecoverVolumeExpansionFailure")
        self._recorder = context.recorder_for(plan.SOURCE)
        self._operations = StorageOperations(context.metrics, context.clock)
        self._claims = context.cache(PERSISTENT_VOLUME_CLAIMS).store
        self._volumes = context.cache(PERSISTENT_VOLUMES).store
        self._new: set[str] = set()
        """Claims that are queued because they, or their binding, are new. Their volumes need no request where the cache
        shows that nothing is to be expanded: at a start, a request for each claim would delay any expansion. Upstream
        requests them all."""

    async def sync(self, key: str) -> None:
        claim, is_new = self._claims.get(key), key in self._new
        self._new.discard(key)
        if claim is None:
            return
        known = self._volumes.get(claim.spec.volume_name) if is_new else None
        if known is not None and plan.is_settled(claim, known):
            return
        volume = await self._client.get(PERSISTENT_VOLUMES, "", claim.spec.volume_name)
        if not plan.must_grow(claim, volume):
            return
        if volume.spec.flex_volume is not None:
            await self._expand(claim, volume, volume.spec.flex_volume)
            return
        fields = {"pvcKey": key, "pvcUID": claim.uid}
        log.info("Waiting for an external controller to expand the PVC", extra={"fields": fields})
        self._recorder.emit(plan.waiting(claim, volume))
        naming = plan.plan_resizer(claim, volume)
        if naming is None:
            return
        try:
            await writes.send(self._client, naming)
        except RequestError as error:
            more = {"PVC": kobj(claim), "err": str(error)}
            log.error("Error setting PVC in progress with error", extra={"fields": more})
            self._recorder.emit(plan.not_named(claim, error))
            raise

    async def _expand(self, claim: PersistentVolumeClaim, volume: PersistentVolume, source: FlexSource) -> None:
        if plan.is_complete(claim, volume) and PRE_RESIZE_CAPACITY in volume.annotations:
            await writes.send(self._client, plan.forgotten(volume))
            return
        with self._operations.measured(source.driver, OPERATION):
            await self._grow(claim, volume, source)

    async def _grow(self, claim: PersistentVolumeClaim, volume: PersistentVolume, source: FlexSource) -> None:
        """Write the steps of an expansion one after another, each on the result of the one before."""
        now, key, recovers = self._clock.now(), claim.key, self._recovers
        growth = plan.plan_growth(claim, volume, recovers=recovers)
        failure = f"error marking pvc {key} for node expansion"
        if growth.step is Step.ALL:
            action = plan.started(claim, source.driver, growth.size, now, recovers=recovers)
            begun = await self._write(claim, action, f"error updating pvc {key} with resize in progress")
            larger = plan.resized(volume, growth.size, recovers=recovers)
            await self._write(claim, larger, f"error updating pv for pvc {key}")
            claim = begun if isinstance(begun, PersistentVolumeClaim) else claim
        if growth.step is Step.ALL and volume.spec.volume_mode == "Block":
            done = plan.finished(claim, growth.size, recovers=recovers)
            await self._write(claim, done, f"error marking pvc {key} as resized")
            self._recorder.emit(plan.succeeded(claim))
            return
        if growth.step is not Step.NOTHING:
            await self._write(claim, plan.waiting_for_node(claim, now, recovers=recovers), failure)
        await self._write(claim, plan.remembered(claim, volume), failure)

    async def _write(self, claim: PersistentVolumeClaim, action: Patch | None, failure: str) -> Object | None:
        if action is None:
            return None
        try:
            return await writes.send(self._client, action)
        except RequestError as error:
            self._recorder.emit(plan.failed(claim, f"{failure}: {error}"))
            raise

    def bound(self, claim: PersistentVolumeClaim) -> Keys:
        """The claim's key, if it is bound to a volume."""
        if claim.status.phase != "Bound" or not claim.spec.volume_name:
            return ()
        self._new.add(claim.key)
        return (claim.key,)

    def grown(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> Keys:
        """The claim's key, if its request or its capacity has grown."""
        if not plan.has_grown(old, new):
            return ()
        keys = self.bound(new)
        if old.status.phase == "Bound":
            self._new.discard(new.key)
        return keys


CONTROLLER = Controller(
    ExpandController,
    Queue(
        "volume_expand",
        Watch(PERSISTENT_VOLUME_CLAIMS, added=ExpandController.bound, updated=ExpandController.grown),
        sync=ExpandController.sync,
        failures=unhandled("{key} failed with : {error}"),
        workers=WORKERS,
    ),
    reads=(PERSISTENT_VOLUMES,),
    announces=starting("expand controller"),
)
