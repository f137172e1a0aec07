"""Reclaims a volume whose claim was deleted: retains, recycles or deletes it.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go#reclaimVolume, recycleVolumeOperation,
deleteVolumeOperation
"""

import logging
from contextlib import suppress
from functools import partial

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.component.environment import Host
from kcm_cli.component.logs import V2
from kcm_cli.component.volume_config import VolumeConfig
from kcm_cli.controllers.persistentvolume_binder import plan, plugins
from kcm_cli.controllers.persistentvolume_binder.caches import Caches
from kcm_cli.controllers.persistentvolume_binder.metrics import DELETE, OperationMetrics
from kcm_cli.controllers.persistentvolume_binder.operations import Again, Operations
from kcm_cli.controllers.persistentvolume_binder.plan import NORMAL, WARNING, Event
from kcm_cli.controllers.persistentvolume_binder.plugins import HostPaths
from kcm_cli.controllers.persistentvolume_binder.recycler import RecycleError, Recycler, RecyclerPods
from kcm_cli.controllers.persistentvolume_binder.writes import Writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.planning.protection import release
from kcm_cli.planning.volumes.migration import provisioner_of
from kcm_cli.planning.volumes.names import IN_TREE_FINALIZER, MIGRATED_TO
from kcm_cli.rest.errors import NotFound

log = logging.getLogger(__name__)

FAILED_DELETE, FAILED_RECYCLE = "VolumeFailedDelete", "VolumeFailedRecycle"
UNKNOWN_POLICY = Event(WARNING, "VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
NO_RECYCLER = Event(WARNING, FAILED_RECYCLE, "No recycler plugin found for the volume!")
RECYCLED = Event(NORMAL, "VolumeRecycled", "Volume recycled")


class Reclaimer:
    """Executes the reclaim policies of released volumes."""

    def __init__(self, context: ControllerContext, caches: Caches, writes: Writes, metrics: OperationMetrics) -> None:
        self._client = context.client
        self._caches = caches
        self._writes = writes
        self._metrics = metrics
        self._paths = HostPaths(context.rng, simulated=context.config(Host).simulated_nodes)
        self._pods = RecyclerPods(context.config(VolumeConfig))
        self._recycler = Recycler(context.client, caches.pods)
        _, self._volumes = context.queues
        self.operations = Operations(context.clock, context.name)

    async def reclaim(self, volume: PersistentVolume) -> None:
        """Execute the volume's policy. Volumes migrated to a CSI driver are left to the driver's external
        provisioner."""
        if volume.annotations.get(MIGRATED_TO):
            return
        match volume.spec.persistent_volume_reclaim_policy:
            case "Retain":
                return
            case "Recycle":
                self.operations.start(recycling(volume), partial(self._recycle, volume), self._again(volume))
            case "Delete":
                await self._delete(volume)
            case _:
                await self._writes.fail(volume, UNKNOWN_POLICY)

    def _again(self, volume: PersistentVolume) -> Again:
        return partial(self._volumes.add_after, volume.name, retry=False)

    async def _released(self, volume: PersistentVolume) -> PersistentVolume | None:
        """The latest version of the volume, if it still has to be reclaimed.

        Its data are lost then, so a claim that the cache does not have is looked up.
        """
        now = await self._client.find(PERSISTENT_VOLUMES, "", volume.name)
        if now is None or now.uid != volume.uid or not plan.is_released(now, self._caches.claim_of(now)):
            return None
        ref = now.spec.claim_ref
        claim = None if ref is None else await self._client.find(PERSISTENT_VOLUME_CLAIMS, ref.namespace, ref.name)
        return now if plan.is_released(now, claim) else None

    # -- recycling

    async def _recycle(self, volume: PersistentVolume) -> None:
        now = await self._released(volume)
        if now is None:
            return
        users = self._caches.users(now)
        if users and self._caches.claim_of(now) is None:
            used = Event(NORMAL, FAILED_RECYCLE, f"Volume is used by pods: {','.join(users)}")
            self._writes.emit_on_volume(volume, used)
            return
        if not plugins.plugin_of(now):
            await self._writes.fail(now, NO_RECYCLER)
            return
        try:
            await self._recycler.run(self._pods.pod(now), partial(self._emit_from_pod, now))
        except RecycleError as error:
            await self._writes.fail(now, Event(WARNING, FAILED_RECYCLE, f"Recycle failed: {error}"))
            return
        log.log(V2, "Volume recycled", extra={"fields": {"volumeName": now.name}})
        self._writes.emit_on_volume(now, RECYCLED)
        await self._writes.unbind(now)

    def _emit_from_pod(self, volume: PersistentVolume, type_: str, message: str) -> None:
        self._writes.emit_on_volume(volume, Event(type_, "RecyclerPod", f"Recycler pod: {message}"))

    # -- deletion

    async def _delete(self, volume: PersistentVolume) -> None:
        try:
            plugin = plugins.deletes(volume)
        except plugins.NoPlugin as error:
            self._metrics.started(volume.name, plugins.UNKNOWN, DELETE)
            await self._writes.fail(volume, Event(WARNING, FAILED_DELETE, str(error)))
            return
        self._metrics.started(volume.name, plugin or self._outside(volume), DELETE)
        if plugin:
            self.operations.start(deletion(volume), partial(self._delete_here, volume, plugin), self._again(volume))

    def _outside(self, volume: PersistentVolume) -> str:
        """The external provisioner that deletes a volume, according to its class; its annotations do not count."""
        class_ = self._caches.class_of_volume(volume)
        return provisioner_of(class_.provisioner) if class_ is not None else plugins.UNKNOWN

    async def _delete_here(self, volume: PersistentVolume, plugin: str) -> None:
        now = await self._released(volume)
        if now is None:
            return
        missing = f'failed to create deleter for volume "{volume.name}": spec.PersistentVolumeSource.HostPath is nil'
        try:
            with self._metrics.attempt(plugin, DELETE):
                if now.spec.host_path is None:
                    raise OSError(missing)
                await self._paths.delete(now.spec.host_path.path)
        except OSError as error:
            self._metrics.failed(volume.name)
            await self._writes.fail(now, Event(WARNING, FAILED_DELETE, str(error)))
            raise
        log.log(V2, "Volume deleted", extra={"fields": {"volumeName": now.name}})
        await self._remove(now)

    async def _remove(self, volume: PersistentVolume) -> None:
        """Delete the PersistentVolume of a deleted volume."""
        if IN_TREE_FINALIZER in volume.metadata.finalizers:
            update = release(PERSISTENT_VOLUMES, volume, IN_TREE_FINALIZER)
            volume = await self._writes.volume(volume, update.changes, reason="volume was deleted")
            text = "PV in-tree protection finalizer removed from volume"
            log.log(V2, text, extra={"fields": {"volumeName": volume.name}})
        with suppress(NotFound):
            await self._client.delete(
                PERSISTENT_VOLUMES, "", volume.name, uid=volume.uid, reason="volume was deleted with its claim"
            )


def recycling(volume: PersistentVolume) -> str:
    return f"recycle-{volume.name}[{volume.uid}]"


def deletion(volume: PersistentVolume) -> str:
    return f"delete-{volume.name}[{volume.uid}]"
