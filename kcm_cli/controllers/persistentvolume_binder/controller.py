"""persistentvolume-binder-controller: binds claims to volumes, and reclaims volumes.

Volumes and claims are synced when they change, and all of them periodically, since a claim may wait for something that
is not watched. There are two queues with one worker each: two concurrent syncs of claims could choose the same volume.

upstream: pkg/controller/volume/persistentvolume
"""

import logging
from typing import assert_never

from kcm_cli.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES, PersistentVolume
from kcm_cli.component.logs import V2
from kcm_cli.controllers.persistentvolume_binder import plan
from kcm_cli.controllers.persistentvolume_binder.caches import Caches
from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.controllers.persistentvolume_binder.metrics import CountCollector, OperationMetrics
from kcm_cli.controllers.persistentvolume_binder.plan import (
    AssignClass,
    Bind,
    Lose,
    Mismatch,
    Pend,
    Provision,
    Reclaim,
    Refuse,
    SetPhase,
    Simple,
    Snapshot,
)
from kcm_cli.controllers.persistentvolume_binder.provision import Provisioner, operation_of
from kcm_cli.controllers.persistentvolume_binder.reclaim import Reclaimer, deletion, recycling
from kcm_cli.controllers.persistentvolume_binder.writes import Writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch, starting
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.names import path_segment
from kcm_cli.planning.volumes import binding
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

CHUNK = 500
"""Objects that one pass checks before other tasks run."""
SHORTEST_PERIOD_S = 0.1
"""Not as upstream, which resyncs without a pause if the period is zero."""


class InvalidBinding(SyncError):
    """A bound claim names a volume that is bound to another claim."""


class VolumeBinder:
    """Keys are claims in one queue, names of volumes in the other. upstream: PersistentVolumeController."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        attributes_classes = context.gates.enabled("VolumeAttributesClass")
        self._caches = Caches(context.cache, attributes_classes=attributes_classes)
        self._metrics = OperationMetrics(context.metrics, context.clock)
        self._writes = Writes(context.client, self._caches, context.recorder)
        self._provisioner = Provisioner(context, self._caches, self._writes, self._metrics)
        self._reclaimer = Reclaimer(context, self._caches, self._writes, self._metrics)
        self.operations = (self._provisioner.operations, self._reclaimer.operations)
        self._claims, self._volumes = context.queues
        self.period_s = max(context.config(PersistentVolumeBinderConfig).sync_period_s, SHORTEST_PERIOD_S)
        context.metrics.add(CountCollector(self._caches))

    async def resync(self) -> None:
        """Queue all unsettled claims and volumes."""
        await self._caches.catch_up()
        async for claim in in_turns(self._caches.claims.store.list(), CHUNK):
            for key in self.unsettled_claim(claim):
                self._claims.add(key)
        async for volume in in_turns(self._caches.volumes.store.list(), CHUNK):
            for key in self.unsettled_volume(volume):
                self._volumes.add(key)

    # -- claims

    async def sync_claim(self, key: str) -> None:
        claim = self._caches.claims.get(key)
        if claim is None:
            log.log(V2, "Deletion of claim was already processed", extra={"fields": {"claimKey": key}})
            return
        claim = await self._writes.claim(claim, binding.claim_migration(claim), reason="CSI migration")
        decision = plan.plan_claim(self._caches.read(claim))
        match decision:
            case Bind():
                await self._bind(claim, decision)
            case Pend(event):
                if event is not None:
                    self._writes.emit_on_claim(claim, event)
                await self._writes.pend(claim)
            case AssignClass(name):
                await self._assign(claim, name)
            case Provision():
                self._provisioner.provision(claim)
            case Lose(event):
                if await self._is_lost(claim):
                    await self._writes.lose(claim, event)
            case Refuse(event, why):
                self._writes.emit_on_claim(claim, event)
                raise InvalidBinding(why)
            case _:
                assert_never(decision)

    async def _bind(self, claim: PersistentVolumeClaim, decision: Bind) -> None:
        try:
            await self._writes.bind(decision.volume, claim)
        except (binding.NoCapacity, RequestError):
            if decision.found:
                self._metrics.failed(claim.key)
            raise
        if decision.found:
            self._metrics.ended(claim.key)

    async def _is_lost(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a claim has lost its volume by the API server, too. The cache may not have the volume yet, or show
        that it has another claim: then a later pass binds the claim. No volume has a name that is no part of a path."""
        name = claim.spec.volume_name
        if claim.status.phase == "Lost" or not name or path_segment(name):
            return True
        live = await self._client.find(PERSISTENT_VOLUMES, "", name)
        return isinstance(plan.plan_claim(Snapshot(claim, live)), Lose)

    async def _assign(self, claim: PersistentVolumeClaim, name: str) -> None:
        """Write the default class to a claim. The change queues the claim again."""
        try:
            await self._writes.claim(claim, {("spec", "storageClassName"): name}, reason="default class")
        except RequestError:
            self._metrics.assigned_class(failed=True)
            raise
        self._metrics.assigned_class(failed=False)

    # -- volumes

    async def sync_volume(self, key: str) -> None:
        volume = self._caches.volumes.get(key)
        if volume is None:
            log.log(V2, "Deletion of volume was already processed", extra={"fields": {"volumeKey": key}})
            return
        volume = await self._writes.volume(volume, binding.volume_migration(volume), reason="CSI migration")
        claim = self._caches.claim_of(volume)
        decision = plan.plan_volume(volume, claim)
        if decision is Simple.ASK:
            claim = await self._read_claim(volume)
            decision = plan.plan_volume(volume, claim, asked=True)
        match decision:
            case SetPhase(phase):
                await self._writes.phase(volume, phase)
            case Reclaim(announced):
                policy = volume.spec.persistent_volume_reclaim_policy
                fields = {"volumeName": volume.name, "reclaimPolicy": policy}
                log.log(V2, "Volume is released and reclaim policy will be executed", extra={"fields": fields})
                volume = volume if announced else await self._writes.phase(volume, "Released")
                await self._reclaimer.reclaim(volume)
            case Mismatch(of_volume, of_claim):
                self._writes.emit_on_volume(volume, of_volume)
                if claim is not None:
                    self._writes.emit_on_claim(claim, of_claim)
            case Simple.CLAIM_FIRST:
                if claim is not None:
                    self._claims.add(claim.key)
            case Simple.UNBIND:
                await self._writes.unbind(volume)
            case Simple.ASK:
                raise AssertionError("unreachable: the server has been asked")
            case _:
                assert_never(decision)

    async def _read_claim(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim that a volume's claimRef names, read from the API server."""
        ref = volume.spec.claim_ref
        return None if ref is None else await self._client.find(PERSISTENT_VOLUME_CLAIMS, ref.namespace, ref.name)

    # -- events

    def unsettled_claim(self, claim: PersistentVolumeClaim) -> tuple[str, ...]:
        """The claim's key, unless its binding is complete."""
        claim = self._caches.claims.get(claim.key) or claim
        volume = self._caches.volumes.get(claim.spec.volume_name)
        return (claim.key,) if volume is None or not binding.is_complete(volume, claim) else ()

    def unsettled_volume(self, volume: PersistentVolume) -> tuple[str, ...]:
        """The volume's name, unless it is settled."""
        volume = self._caches.volumes.get(volume.name) or volume
        settled = not binding.volume_migration(volume) and plan.is_settled(volume, self._caches.claim_of(volume))
        return () if settled else (volume.name,)

    def volumes_of(self, claim: PersistentVolumeClaim) -> Keys:
        """The volumes that a deleted claim was bound to."""
        self._metrics.forget(claim.key)
        self._provisioner.operations.forget(operation_of(claim))
        return {claim.spec.volume_name, *self._caches.kept_for(claim.key)} - {""}

    def claim_of(self, volume: PersistentVolume) -> Keys:
        """The claim that a deleted volume was bound to."""
        self._metrics.ended(volume.name)
        for operation in (recycling(volume), deletion(volume)):
            self._reclaimer.operations.forget(operation)
        ref = volume.spec.claim_ref
        return () if ref is None else (f"{ref.namespace}/{ref.name}",)


CONTROLLER = Controller(
    VolumeBinder,
    (
        Queue(
            "claims",
            Watch(PERSISTENT_VOLUME_CLAIMS, changed=VolumeBinder.unsettled_claim),
            watches=(Watch(PERSISTENT_VOLUMES, deleted=VolumeBinder.claim_of),),
            sync=VolumeBinder.sync_claim,
            failures=Failures(retried="Could not sync claim", key="PVC", ref=True),
        ),
        Queue(
            "volumes",
            Watch(PERSISTENT_VOLUMES, changed=VolumeBinder.unsettled_volume),
            watches=(Watch(PERSISTENT_VOLUME_CLAIMS, deleted=VolumeBinder.volumes_of),),
            sync=VolumeBinder.sync_volume,
            failures=Failures(retried="Could not sync volume", key="volumeName"),
        ),
    ),
    reads=(STORAGE_CLASSES, PODS, NODES),
    passes=(Periodic(VolumeBinder.resync, pause_s=lambda binder: binder.period_s),),
    beside=lambda binder: binder.operations,
    announces=starting("persistent volume controller"),
)
