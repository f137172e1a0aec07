"""volumeattributesclass-protection-controller: keeps a deleted VolumeAttributesClass, by a finalizer, while claims or
volumes use it.

upstream: pkg/controller/volume/vacprotection
"""

from collections.abc import Callable
from typing import TypeVar

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.resource import Resource
from kcm_cli.api.storage import PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES, PersistentVolume
from kcm_cli.controllers.shared.live import LiveUsers
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, only, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.protection import is_held, needs_work, plan

FINALIZER = "kubernetes.io/vac-protection"
INDEX = "volumeAttributesClass"
AGAIN_S = 60.0
"""When to look again at a class that something may use which cannot be decoded, or uses which the cache does not
show."""
T = TypeVar("T", bound=Object)


def classes_of_claim(claim: PersistentVolumeClaim) -> frozenset[str]:
    """The requested class, the current class, and the target class of a pending modification."""
    status = claim.status
    names = {claim.spec.volume_attributes_class_name, status.current_volume_attributes_class_name}
    if status.modify_volume_status is not None:
        names.add(status.modify_volume_status.target_volume_attributes_class_name)
    return frozenset(name for name in names if name)


def classes_of_volume(volume: PersistentVolume) -> frozenset[str]:
    name = volume.spec.volume_attributes_class_name
    return frozenset((name,)) if name else frozenset()


class ClassProtectionController:
    """Keys are names of classes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        (self._queue,) = context.queues
        self._claims = context.cache(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.cache(PERSISTENT_VOLUMES)
        self._classes = context.cache(VOLUME_ATTRIBUTES_CLASSES)
        self._claims.store.add_index(INDEX, classes_of_claim)
        self._volumes.store.add_index(INDEX, classes_of_volume)
        self._live_claims = LiveUsers(self._client, PERSISTENT_VOLUME_CLAIMS, classes_of_claim)
        self._live_volumes = LiveUsers(self._client, PERSISTENT_VOLUMES, classes_of_volume)

    async def sync(self, key: str) -> float | None:
        try:
            return await self._sync(key)
        finally:
            if not len(self._queue):
                self._live_claims.clear()  # no other class needs the lists
                self._live_volumes.clear()

    async def _sync(self, key: str) -> float | None:
        class_ = self._classes.store.get(key)
        if class_ is None:
            return None
        if is_held(class_, FINALIZER) and not self._is_used(key):
            if self._volumes.store.unseen() or self._claims.store.unseen():
                return AGAIN_S  # what cannot be decoded may use any class
            if await self._live_volumes.find(key, class_) or await self._live_claims.find(key, class_):
                return AGAIN_S
        update = plan(VOLUME_ATTRIBUTES_CLASSES, class_, FINALIZER, used=self._is_used(key))
        if update is not None:
            await writes.send(self._client, update)
        return None

    def _is_used(self, name: str) -> bool:
        return bool(self._volumes.store.by_index(INDEX, name) or self._claims.store.by_index(INDEX, name))


def unused_classes(resource: Resource[T], classes_of: Callable[[T], frozenset[str]]) -> Watch:
    """A watch that queues the classes that an object stops using, also by its deletion."""

    def updated(controller: ClassProtectionController, old: T, new: T) -> Keys:
        return classes_of(old) - classes_of(new)

    def deleted(controller: ClassProtectionController, user: T) -> Keys:
        return classes_of(user)

    return Watch(resource, updated=updated, deleted=deleted)


CONTROLLER = Controller(
    ClassProtectionController,
    Queue(
        "vacprotection",
        Watch(VOLUME_ATTRIBUTES_CLASSES, changed=only(lambda class_: needs_work(class_, FINALIZER))),
        watches=(
            unused_classes(PERSISTENT_VOLUME_CLAIMS, classes_of_claim),
            unused_classes(PERSISTENT_VOLUMES, classes_of_volume),
        ),
        sync=ClassProtectionController.sync,
        failures=unhandled("VAC {key} failed with : {error}"),
    ),
    announces=starting("VAC protection controller"),
)
