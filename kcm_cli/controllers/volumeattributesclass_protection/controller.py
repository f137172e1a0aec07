"""volumeattributesclass-protection-controller: a class that a claim or a volume uses is not gone before they are.

Only caches are asked: a class that is deleted in the moment in which a claim begins to use it may go too early.

upstream: pkg/controller/volume/vacprotection
"""

from collections.abc import Callable
from typing import TypeVar

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.storage import PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES, VolumeAttributesClass
from kcm_cli.controllers.volumeattributesclass_protection.plan import FINALIZER, classes_of_claim, classes_of_volume
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.protection import is_held, lacks, protection, release
from kcm_cli.runtime.informer import Informer

INDEX = "volumeAttributesClass"
AGAIN_S = 60.0
"""When to look again at a class that something may use which cannot be decoded."""
T = TypeVar("T", bound=Object)


def build(context: ControllerContext) -> Runnable:
    controller = ClassProtectionController(context)
    return context.worker(controller.queue, controller.sync, count=1, waits_for=controller.informers)


class ClassProtectionController:
    """Keys are names of classes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.queue = context.queue("vacprotection")
        self._claims = context.informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.informers.get(PERSISTENT_VOLUMES)
        self._classes = context.informers.get(VOLUME_ATTRIBUTES_CLASSES)
        self.informers = (self._claims, self._volumes, self._classes)
        self._classes.listen(on_add=self._class, on_update=lambda old, new: self._class(new))
        self._follow(self._claims, classes_of_claim)
        self._follow(self._volumes, classes_of_volume)

    async def sync(self, key: str) -> float | None:
        class_ = self._classes.store.get(key)
        if class_ is None:
            return None
        if is_held(class_, FINALIZER) and not self._is_used(key):
            if self._volumes.store.unseen() or self._claims.store.unseen():
                return AGAIN_S  # what cannot be decoded may use any class
            await writes.update(self._client, release(VOLUME_ATTRIBUTES_CLASSES, class_, FINALIZER))
        elif lacks(class_, FINALIZER):
            await writes.update(self._client, protection(VOLUME_ATTRIBUTES_CLASSES, class_, FINALIZER))
        return None

    def _is_used(self, name: str) -> bool:
        return bool(self._volumes.store.by_index(INDEX, name) or self._claims.store.by_index(INDEX, name))

    # -- events

    def _follow(self, users: Informer[T], classes_of: Callable[[T], frozenset[str]]) -> None:
        """Look at a class again when one of its users is gone or uses it no more."""

        def freed(names: frozenset[str]) -> None:
            for name in names:
                self.queue.add(name)

        users.store.add_index(INDEX, classes_of)
        users.listen(
            on_update=lambda old, new: freed(classes_of(old) - classes_of(new)),
            on_delete=lambda gone: freed(classes_of(gone)),
        )

    def _class(self, class_: VolumeAttributesClass) -> None:
        if is_held(class_, FINALIZER) or lacks(class_, FINALIZER):
            self.queue.add(class_.name)
