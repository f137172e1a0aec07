"""The writes to volumes and claims. Each carries the version that it was decided on, and its answer is stored before
the watch delivers it. An object that needs no write is returned unchanged.

All raise ApiError and TransportError.
"""

import logging

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.component.logs import V2
from kcm_cli.controllers.persistentvolume_binder.caches import Caches
from kcm_cli.controllers.persistentvolume_binder.plan import Event
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Recorder
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.actions import Notice, edited, ref_to
from kcm_cli.planning.volumes import binding
from kcm_cli.planning.volumes.binding import Changes

log = logging.getLogger(__name__)

STATUS = "status"


class Writes:
    """The writes of one client."""

    def __init__(self, client: Door, caches: Caches, recorder: Recorder) -> None:
        self._client = client
        self._caches = caches
        self._recorder = recorder

    # -- both

    async def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Bind a volume and a claim to each other, the volume first. Raises NoCapacity."""
        reason = f"bound to claim {claim.key}"
        if changes := binding.volume_pointer(volume, claim):
            volume = await self.volume(volume, changes, reason=reason)
            fields = {"PVC": kobj(claim), "volumeName": volume.name}
            log.log(V2, "Claim bound to volume", extra={"fields": fields})
        volume = await self.phase(volume, "Bound")
        if changes := binding.claim_pointer(claim, volume):
            claim = await self.claim(claim, changes, reason=f"bound to volume {volume.name}")
            fields = {"PVC": kobj(claim), "volumeName": volume.name}
            log.log(V2, "Volume bound to claim", extra={"fields": fields})
        bound = binding.bound_status(claim, volume, attributes_classes=self._caches.attributes_classes)
        await self._claim_phase(claim, bound, "Bound")

    async def unbind(self, volume: PersistentVolume) -> None:
        """Remove the volume's half of a binding."""
        volume = await self.volume(volume, binding.release(volume), reason="claim is gone or bound elsewhere")
        await self.phase(volume, "Available")

    # -- volumes

    async def volume(
        self, volume: PersistentVolume, changes: Changes, subresource: str = "", *, reason: str = ""
    ) -> PersistentVolume:
        if not changes:
            return volume
        doc = edited(volume, changes)
        written = await self._client.update(
            PERSISTENT_VOLUMES, "", volume.name, doc, subresource=subresource, reason=reason
        )
        self._caches.volumes.wrote(written)
        return written

    async def phase(self, volume: PersistentVolume, phase: str) -> PersistentVolume:
        return await self._volume_phase(volume, binding.volume_phase(volume, phase), phase)

    async def _volume_phase(self, volume: PersistentVolume, changes: Changes, phase: str) -> PersistentVolume:
        if not changes:
            return volume
        written = await self.volume(volume, changes, STATUS, reason=f"phase {phase}")
        fields = {"volumeName": volume.name, "phase": phase}
        log.log(V2, "Volume entered phase", extra={"fields": fields})
        return written

    async def fail(self, volume: PersistentVolume, event: Event) -> None:
        """Set the volume's phase to Failed. The Event is emitted once, even if it is retried."""
        changes = binding.volume_phase(volume, "Failed", event.message)
        if changes:
            self.emit_on_volume(await self._volume_phase(volume, changes, "Failed"), event)

    def emit_on_volume(self, volume: PersistentVolume, event: Event) -> None:
        self._recorder.emit(Notice(ref_to(PERSISTENT_VOLUMES, volume), event.type, event.reason, event.message))

    # -- claims

    async def claim(
        self, claim: PersistentVolumeClaim, changes: Changes, subresource: str = "", *, reason: str = ""
    ) -> PersistentVolumeClaim:
        if not changes:
            return claim
        doc, namespace = edited(claim, changes), claim.namespace
        written = await self._client.update(
            PERSISTENT_VOLUME_CLAIMS, namespace, claim.name, doc, subresource=subresource, reason=reason
        )
        self._caches.claims.wrote(written)
        return written

    async def pend(self, claim: PersistentVolumeClaim) -> None:
        await self._claim_phase(claim, binding.unbound_status(claim, "Pending"), "Pending")

    async def _claim_phase(self, claim: PersistentVolumeClaim, changes: Changes, phase: str) -> PersistentVolumeClaim:
        if not changes:
            return claim
        written = await self.claim(claim, changes, STATUS, reason=f"phase {phase}")
        log.log(V2, "Claim entered phase", extra={"fields": {"PVC": kobj(claim), "phase": phase}})
        return written

    async def lose(self, claim: PersistentVolumeClaim, event: Event) -> None:
        """Set the claim's phase to Lost. The Event is emitted once."""
        if claim.status.phase != "Lost":
            lost = binding.unbound_status(claim, "Lost")
            self.emit_on_claim(await self._claim_phase(claim, lost, "Lost"), event)

    def emit_on_claim(self, claim: PersistentVolumeClaim, event: Event) -> None:
        notice = Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), event.type, event.reason, event.message)
        self._recorder.emit(notice)
