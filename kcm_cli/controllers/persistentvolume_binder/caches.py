"""The caches of the controller, and the snapshot for one decision."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES, PersistentVolume, StorageClass
from kcm_cli.controllers.persistentvolume_binder.plan import Snapshot
from kcm_cli.engine.context import CacheOf
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.pod_claims import CLAIM, claims_of
from kcm_cli.planning.pods import is_stopped
from kcm_cli.planning.volumes.classes import (
    class_of_claim,
    class_of_volume,
    default_class,
    says_class,
    waits_for_consumer,
)
from kcm_cli.planning.volumes.index import VolumeIndex
from kcm_cli.planning.volumes.matching import NO_ATTRIBUTES_CLASSES, attributes_class
from kcm_cli.planning.volumes.names import BIND_COMPLETED
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.turns import in_turns

T = TypeVar("T", bound=Object)


class Latest(Generic[T]):
    """A cache that always shows this controller's own writes. Each change calls ``on_change(old, new)``.

    The writes of a binding are seen in the shared cache one by one and with a delay. A sync that read it in between
    would repeat them, and be rejected. This cache holds the newest version of an object, whether it came as the answer
    to a write or from the watch. An older one is taken only after the shared cache has shown it for a whole pass: the
    storage was restored, and its versions went back.

    upstream: pkg/controller/volume/persistentvolume/pv_controller_base.go#storeObjectUpdate
    """

    def __init__(
        self, informer: Informer[T], on_change: Callable[[T | None, T | None], None] = lambda old, new: None
    ) -> None:
        self.store: Store[T] = Store()
        self._shared = informer.store
        self._older: dict[str, bool] = {}
        """What the shared cache has shown in an older version, and whether it had before the last pass."""
        self._on_change = on_change
        informer.listen(on_add=self._seen, on_update=lambda old, new: self._seen(new), on_delete=self._deleted)

    def get(self, key: str) -> T | None:
        return self.store.get(key)

    def wrote(self, obj: T) -> None:
        """Store the answer to a write. An object that was deleted meanwhile is not restored."""
        held = self.store.get(obj.key)
        if held is not None and held.uid == obj.uid and held.version <= obj.version:
            self._put(obj)

    async def catch_up(self) -> None:
        """Take what was older at the last call, too. Yields to the loop in between."""
        async for key in in_turns(list(self._older), OBJECTS):
            shown = self._shared.get(key)
            if self._older.get(key) and shown is not None:
                self._put(shown)
            elif key in self._older:
                self._older[key] = True

    def _seen(self, obj: T) -> None:
        held = self.store.get(obj.key)
        if held is not None and held.uid == obj.uid and held.version > obj.version:
            self._older.setdefault(obj.key, False)
            return
        self._put(obj)

    def _deleted(self, obj: T) -> None:
        self._older.pop(obj.key, None)
        self._on_change(self.store.pop(obj.key), None)

    def _put(self, obj: T) -> None:
        self._older.pop(obj.key, None)
        self._on_change(self.store.put(obj), obj)


class Unsupported(SyncError):
    """A claim uses a feature that is newer than the emulated version."""


class VolumeUnknown(SyncError):
    """The volume that a claim names exists but cannot be decoded, so that nothing can be decided about the claim."""


class Caches:
    """Volumes and claims with their latest writes, an index of free volumes, storage classes, and pods by their
    claims."""

    def __init__(self, cache: CacheOf, *, attributes_classes: bool) -> None:
        """``attributes_classes``: gate VolumeAttributesClass."""
        self.attributes_classes = attributes_classes
        volumes, claims = cache(PERSISTENT_VOLUMES), cache(PERSISTENT_VOLUME_CLAIMS)
        classes, pods = cache(STORAGE_CLASSES), cache(PODS)
        self._shared = volumes.store
        self._index = VolumeIndex()
        self.volumes: Latest[PersistentVolume] = Latest(volumes, self._index.change)
        self.claims: Latest[PersistentVolumeClaim] = Latest(claims)
        self._classes = classes.store
        self.pods = pods
        pods.store.add_index(CLAIM, claims_of)

    def read(self, claim: PersistentVolumeClaim) -> Snapshot:
        """The snapshot of a claim. Raises FormatError for an invalid selector, Unsupported and VolumeUnknown."""
        if claim.spec.volume_name or BIND_COMPLETED in claim.annotations:
            if self._shared.is_unseen(claim.spec.volume_name):
                raise VolumeUnknown(f"volume {claim.spec.volume_name} of claim {claim.key} cannot be decoded")
            named = self.volumes.get(claim.spec.volume_name)
            return Snapshot(claim, named, attributes_classes=self.attributes_classes)
        if attributes_class(claim) and not self.attributes_classes:
            raise Unsupported(f"volumeAttributesClassName of claim {claim.key} {NO_ATTRIBUTES_CLASSES}")
        delayed = waits_for_consumer(self.class_of(claim))
        volume = self._index.match(claim, reserved_only=delayed)
        if volume is not None:
            return Snapshot(claim, volume, delayed)
        default = None if says_class(claim) else default_class(self._classes)
        pods = self._waiting(claim) if delayed else ()
        return Snapshot(claim, None, delayed, default.name if default is not None else "", tuple(pods))

    async def catch_up(self) -> None:
        """To be called once in each pass over all objects."""
        await self.volumes.catch_up()
        await self.claims.catch_up()

    def kept_for(self, key: str) -> list[str]:
        """The names of the volumes whose claimRef has this key."""
        return self._index.kept_for(key)

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self._classes.get(class_of_claim(claim))

    def class_of_volume(self, volume: PersistentVolume) -> StorageClass | None:
        return self._classes.get(class_of_volume(volume))

    def claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim that a volume's claimRef names."""
        ref = volume.spec.claim_ref
        return self.claims.get(f"{ref.namespace}/{ref.name}") if ref is not None else None

    def users(self, volume: PersistentVolume) -> list[str]:
        """The keys of pods that still use the claim of a volume's claimRef."""
        ref = volume.spec.claim_ref
        if ref is None:
            return []
        pods = self.pods.store.by_index(CLAIM, f"{ref.namespace}/{ref.name}")
        return sorted(pod.key for pod in pods if not is_stopped(pod))

    def _waiting(self, claim: PersistentVolumeClaim) -> Iterable[str]:
        pods = self.pods.store.by_index(CLAIM, claim.key)
        return sorted(pod.name for pod in pods if not pod.spec.node_name and not is_stopped(pod))
