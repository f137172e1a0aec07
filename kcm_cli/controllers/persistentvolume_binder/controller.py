"""persistentvolume-binder-controller: gives volumes to claims, and takes them back.

Volumes and claims are looked at when they change, and all of them from time to time: what a claim waits for does not
always say so. Two queues, one worker each, as two syncs of claims could otherwise choose the same volume.

upstream: pkg/controller/volume/persistentvolume
"""

import asyncio
from typing import assert_never

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume
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
)
from kcm_cli.controllers.persistentvolume_binder.provision import Provisioner, operation_of
from kcm_cli.controllers.persistentvolume_binder.reclaim import Reclaimer, deletion, recycling
from kcm_cli.controllers.persistentvolume_binder.writes import Writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import Loop, Together
from kcm_cli.planning.volumes import binding
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import RequestError

CHUNK = 500
"""So many objects are looked at in one pass before others have their turn."""
SHORTEST_PERIOD_S = 0.1
"""Not as upstream, which looks again without a pause if the period is zero."""


class InvalidBinding(Exception):
    """A claim says that it was bound to a volume that is another claim's."""

    reason = "InvalidBinding"


def build(context: ControllerContext) -> Runnable:
    controller = VolumeBinder(context)
    waits_for = controller.informers
    claims = context.worker(controller.claims, controller.sync_claim, count=1, waits_for=waits_for)
    volumes = context.worker(controller.volumes, controller.sync_volume, count=1, waits_for=waits_for)
    period_s = max(context.config(PersistentVolumeBinderConfig).sync_period_s, SHORTEST_PERIOD_S)
    again = Loop(
        name=context.name,
        clock=context.clock,
        step=controller.resync,
        pause_s=lambda: period_s,
        waits_for=waits_for,
    )
    return Together((claims, volumes, again, *controller.operations))


class VolumeBinder:
    """Keys are claims in one queue, names of volumes in the other."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        attributes_classes = context.gates.enabled("VolumeAttributesClass")
        self._caches = Caches(context.informers, attributes_classes=attributes_classes)
        self._metrics = OperationMetrics(context.metrics, context.clock)
        self._writes = Writes(context.client, self._caches, context.recorder)
        self._provisioner = Provisioner(context, self._caches, self._writes, self._metrics)
        self._reclaimer = Reclaimer(context, self._caches, self._writes, self._metrics)
        self.operations = (self._provisioner.operations, self._reclaimer.operations)
        self.informers = (*self._caches.informers, *self._provisioner.informers)
        self.claims = context.queue("claims")
        self.volumes = context.queue("volumes")
        volumes, claims, *_ = self._caches.informers
        volumes.listen(on_add=self._volume, on_update=lambda _, new: self._volume(new), on_delete=self._volume_gone)
        claims.listen(on_add=self._claim, on_update=lambda _, new: self._claim(new), on_delete=self._claim_gone)
        context.metrics.add(CountCollector(self._caches))

    async def resync(self) -> None:
        """Look at everything again that is not as it should be."""
        for n, claim in enumerate(self._caches.claims.store.list(), 1):
            self._claim(claim)
            if n % CHUNK == 0:
                await asyncio.sleep(0)
        for n, volume in enumerate(self._caches.volumes.store.list(), 1):
            self._volume(volume)
            if n % CHUNK == 0:
                await asyncio.sleep(0)

    # -- claims

    async def sync_claim(self, key: str) -> None:
        claim = self._caches.claims.get(key)
        if claim is None:
            return
        claim = await self._writes.claim(claim, binding.claim_migration(claim))
        decision = plan.for_claim(self._caches.read(claim))
        match decision:
            case Bind():
                await self._bind(claim, decision)
            case Pend(event):
                if event is not None:
                    self._writes.tell_claim(claim, event)
                await self._writes.pend(claim)
            case AssignClass(name):
                await self._assign(claim, name)
            case Provision():
                self._provisioner.provision(claim)
            case Lose(event):
                await self._writes.lose(claim, event)
            case Refuse(event, why):
                self._writes.tell_claim(claim, event)
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

    async def _assign(self, claim: PersistentVolumeClaim, name: str) -> None:
        """The change brings the claim back, with its class."""
        try:
            await self._writes.claim(claim, {("spec", "storageClassName"): name})
        except RequestError:
            self._metrics.assigned_class(failed=True)
            raise
        self._metrics.assigned_class(failed=False)

    # -- volumes

    async def sync_volume(self, key: str) -> None:
        volume = self._caches.volumes.get(key)
        if volume is None:
            return
        volume = await self._writes.volume(volume, binding.volume_migration(volume))
        claim = self._caches.claim_of(volume)
        decision = plan.for_volume(volume, claim)
        if decision is Simple.ASK:
            claim = await self._ask(volume)
            decision = plan.for_volume(volume, claim, asked=True)
        match decision:
            case SetPhase(phase):
                await self._writes.phase(volume, phase)
            case Reclaim(announced):
                volume = volume if announced else await self._writes.phase(volume, "Released")
                await self._reclaimer.reclaim(volume)
            case Mismatch(of_volume, of_claim):
                self._writes.tell_volume(volume, of_volume)
                if claim is not None:
                    self._writes.tell_claim(claim, of_claim)
            case Simple.CLAIM_FIRST:
                if claim is not None:
                    self.claims.add(claim.key)
            case Simple.UNBIND:
                await self._writes.unbind(volume)
            case Simple.ASK:
                raise AssertionError("unreachable: the server has been asked")
            case _:
                assert_never(decision)

    async def _ask(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim that a volume points to, as the server knows it."""
        ref = volume.spec.claim_ref
        if ref is None:
            return None
        try:
            return await self._client.get(PERSISTENT_VOLUME_CLAIMS, ref.namespace, ref.name)
        except NotFound:
            return None

    # -- events

    def _claim(self, claim: PersistentVolumeClaim) -> None:
        claim = self._caches.claims.get(claim.key) or claim
        volume = self._caches.volumes.get(claim.spec.volume_name)
        if volume is None or not binding.is_complete(volume, claim):
            self.claims.add(claim.key)

    def _volume(self, volume: PersistentVolume) -> None:
        volume = self._caches.volumes.get(volume.name) or volume
        if binding.volume_migration(volume) or not plan.is_settled(volume, self._caches.claim_of(volume)):
            self.volumes.add(volume.name)

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        self._metrics.forget(claim.key)
        self._provisioner.operations.forget(operation_of(claim))
        for name in {claim.spec.volume_name, *self._caches.kept_for(claim.key)} - {""}:
            self.volumes.add(name)

    def _volume_gone(self, volume: PersistentVolume) -> None:
        self._metrics.ended(volume.name)
        for operation in (recycling(volume), deletion(volume)):
            self._reclaimer.operations.forget(operation)
        ref = volume.spec.claim_ref
        if ref is not None:
            self.claims.add(f"{ref.namespace}/{ref.name}")
