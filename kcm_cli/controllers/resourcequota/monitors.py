"""Follows the kinds that some quota limits, and no others.

Kinds that are measured are held with what their measure needs, those that are only counted with their metadata.
A kind is followed from the first quota that names it.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Pod
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.controllers.resourcequota.plan import frees
from kcm_cli.controllers.resourcequota.snapshot import GroupResource
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.pod_totals import Tree
from kcm_cli.rest.mapper import Mapper, NoMatch
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.runtime.store import NAMESPACE


class ResourceClaim(Object, frozen=True, gc=False, kw_only=True):
    """Measured by what its spec asks for."""

    spec: Doc = msgspec.field(default_factory=dict)


_MEASURED: dict[GroupResource, Resource[Any]] = {
    ("", "pods"): PODS,
    ("", "services"): SERVICES,
    ("", "persistentvolumeclaims"): PERSISTENT_VOLUME_CLAIMS,
    ("resource.k8s.io", "resourceclaims"): Resource(
        GVR("resource.k8s.io", "v1", "resourceclaims"), "ResourceClaim", ResourceClaim
    ),
}


class Monitors:
    """``changed(namespace)`` is called where a quota may have become less used."""

    def __init__(self, context: ControllerContext, changed: Callable[[str], None]) -> None:
        self._context = context
        self._mapper = Mapper(context.client, context.clock)
        self._changed = changed
        self._followed: dict[GroupResource, AnyInformer] = {}
        self._since: dict[GroupResource, float] = {}

    async def follow(self, kinds: set[GroupResource]) -> dict[GroupResource, float]:
        """Follow these kinds; which of them are still being listed, and for how long. Unknown ones are left out."""
        now = self._context.clock.monotonic()
        for kind in kinds - self._followed.keys():
            informer = await self._informer(kind)
            if informer is not None:
                self._followed[kind] = informer
                self._since[kind] = now
        self._context.start_informers()
        listing = [kind for kind in kinds if kind in self._followed and not self._followed[kind].synced.is_set()]
        return {kind: now - self._since[kind] for kind in listing}

    def documents(self, kind: GroupResource, namespace: str) -> list[Tree]:
        """The objects of a measured kind."""
        informer = self._followed.get(kind)
        return [document(obj) for obj in informer.store.by_index(NAMESPACE, namespace)] if informer else []

    def count(self, kind: GroupResource, namespace: str) -> int | None:
        """How many there are; None for a kind that is not served."""
        informer = self._followed.get(kind)
        return len(informer.store.by_index(NAMESPACE, namespace)) if informer is not None else None

    async def _informer(self, kind: GroupResource) -> AnyInformer | None:
        measured = _MEASURED.get(kind)
        try:
            served = await self._mapper.resource(*kind)
        except NoMatch:
            return None
        informers = self._context.informers
        if measured is not None:
            informer: AnyInformer = informers.get(measured)
            informer.listen(on_update=self._updated, on_delete=self._deleted)
            return informer
        if not served.namespaced or not served.supports("list", "watch"):
            return None
        informer = informers.metadata(served.partial())
        informer.listen(on_delete=self._deleted)
        return informer

    def _updated(self, old: Object, new: Object) -> None:
        if not (isinstance(old, Pod) and isinstance(new, Pod)) or frees(old, new, self._context.clock.now()):
            self._changed(new.namespace)

    def _deleted(self, obj: Object) -> None:
        self._changed(obj.namespace)


def document(obj: Object) -> Tree:
    """What an object's measure reads."""
    if obj.raw is not None:
        return codec.decode_doc(obj.raw)
    found: Tree = msgspec.to_builtins(obj)
    return found
