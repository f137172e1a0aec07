"""The writes to volumes and claims. Each carries the version that it was decided on, and its answer is stored before
the watch delivers it. An object that needs no write is returned unchanged.

All raise ApiError and TransportError.
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.controllers.persistentvolume_binder.caches import Caches
from kcm_cli.controllers.persistentvolume_binder.plan import Event
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Recorder
from kcm_cli.engine.writes import edited
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.volumes import binding
from kcm_cli.planning.volumes.binding import Changes

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
        volume = await self.volume(volume, binding.volume_pointer(volume, claim))
        volume = await self.phase(volume, "Bound")
        claim = await self.claim(claim, binding.claim_pointer(claim, volume))
        await self.claim(
            claim, binding.bound_status(claim, volume, attributes_classes=self._caches.attributes_classes), STATUS
        )

    async def unbind(self, volume: PersistentVolume) -> None:
        """Remove the volume's half of a binding."""
        volume = await self.volume(volume, binding.release(volume))
        await self.phase(volume, "Available")

    # -- volumes

    async def volume(self, volume: PersistentVolume, changes: Changes, subresource: str = "") -> PersistentVolume:
        if not changes:
            return volume
        doc = edited(volume, changes)
        written = await self._client.update(PERSISTENT_VOLUMES, "", volume.name, doc, subresource=subresource)
        self._caches.volumes.wrote(written)
        return written

    async def phase(self, volume: PersistentVolume, phase: str) -> PersistentVolume:
        return await self.volume(volume, binding.volume_phase(volume, phase), STATUS)

    async def fail(self, volume: PersistentVolume, event: Event) -> None:
        """Set the volume's phase to Failed. The Event is emitted once, even if it is retried."""
        changes = binding.volume_phase(volume, "Failed", event.message)
        if changes:
            self.emit_on_volume(await self.volume(volume, changes, STATUS), event)

    def emit_on_volume(self, volume: PersistentVolume, event: Event) -> None:
        self._recorder.emit(Notice(ref_to(PERSISTENT_VOLUMES, volume), event.type, event.reason, event.message))

    # -- claims

    async def claim(
        self, claim: PersistentVolumeClaim, changes: Changes, subresource: str = ""
    ) -> PersistentVolumeClaim:
        if not changes:
            return claim
        doc, namespace = edited(claim, changes), claim.namespace
        written = await self._client.update(
            PERSISTENT_VOLUME_CLAIMS, namespace, claim.name, doc, subresource=subresource
        )
        self._caches.claims.wrote(written)
        return written

    async def pend(self, claim: PersistentVolumeClaim) -> None:
        await self.claim(claim, binding.unbound_status(claim, "Pending"), STATUS)

    async def lose(self, claim: PersistentVolumeClaim, event: Event) -> None:
        """Set the claim's phase to Lost. The Event is emitted once."""
        if claim.status.phase != "Lost":
            self.emit_on_claim(await self.claim(claim, binding.unbound_status(claim, "Lost"), STATUS), event)

    def emit_on_claim(self, claim: PersistentVolumeClaim, event: Event) -> None:
        notice = Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), event.type, event.reason, event.message)
        self._recorder.emit(notice)
