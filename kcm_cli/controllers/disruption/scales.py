"""The scale of the controllers of pods: from caches for built-in kinds, from the scale subresource for others.

A module of its own, since it reads the API server for kinds that are not cached.
"""

from collections.abc import Iterable
from typing import Any

from kcm_cli.api.apps import DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from kcm_cli.api.autoscaling import Scale
from kcm_cli.api.core import REPLICATION_CONTROLLERS, Pod
from kcm_cli.api.resource import Resource
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.definitions import mapper
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.meta import Object, OwnerReference, controller_of
from kcm_cli.planning.pods import is_terminal
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.mapper import NoMatch
from kcm_cli.rest.served_resources import ServedResource
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.runtime.turns import Turns

SCALED: tuple[Resource[Any], ...] = (REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS, DEPLOYMENTS)
"""The kinds whose sizes are read from caches."""
_CACHED = frozenset(kind.gvr.group_resource for kind in SCALED)


class ScaleUnknown(SyncError):
    """A pod's controller does not exist or has no scale. The text goes into the budget's condition."""


class Scales:
    """Finds controllers and their scales."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._mapper = mapper(context)
        self._informers: dict[str, AnyInformer] = {kind.kind: context.cache(kind) for kind in SCALED}

    async def total(self, pods: Iterable[Pod]) -> tuple[int, bool]:
        """(sum of the controllers' scales, whether some pod has no controller). Raises ScaleUnknown.

        The controller of a pod that is being deleted may be gone before it, as an old ReplicaSet beyond the history.
        That of a pod that has ended need not have a scale either, as a Job: no budget keeps such a pod from being
        evicted. It counts if it has one.
        """
        found: dict[str, tuple[str, int] | None] = {}
        ended: dict[str, tuple[OwnerReference, str]] = {}
        unmanaged, turns = False, Turns.of_loop()
        for pod in pods:
            await turns.step()
            ref = controller_of(pod)
            if ref is None:
                unmanaged = True
                continue
            if is_terminal(pod):
                ended[ref.uid] = ref, pod.namespace
                continue
            if ref.uid not in found:
                found[ref.uid] = await self._of(ref, pod.namespace)
            if found[ref.uid] is None and not pod.deleting:
                raise ScaleUnknown(f'found no controllers for pod "{pod.name}"')
        for uid, (ref, namespace) in ended.items():
            await turns.step()
            if uid not in found:
                found[uid] = await self._of_ended(ref, namespace)
        sizes = dict(one for one in found.values() if one is not None)
        return sum(sizes.values()), unmanaged

    async def _of(self, ref: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """The uid and scale of a controller, or of its Deployment; None if it does not exist."""
        return self._cached(ref, namespace) or await self._from_server(await self._kind(ref), ref, namespace)

    async def _of_ended(self, ref: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """The same of pods that have ended; None also for a kind without a scale, and an unknown one. A Job for each
        pod is not requested, nor is what the caches would have."""
        if (known := self._cached(ref, namespace)) is not None:
            return known
        try:
            served = await self._kind(ref)
        except NoMatch:
            return None
        if served.gvr.group_resource in _CACHED or "scale" not in served.subresources:
            return None
        return await self._from_server(served, ref, namespace)

    def _cached(self, ref: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """The same by the caches; None if these do not have it."""
        known = self._known(ref, namespace)
        if known is not None:
            parent = controller_of(known)
            if ref.kind == REPLICA_SETS.kind and parent is not None and parent.kind == DEPLOYMENTS.kind:
                known = self._known(parent, namespace)
        return None if known is None else (known.uid, _size(known))

    def _known(self, ref: OwnerReference, namespace: str) -> Object | None:
        informer = self._informers.get(ref.kind)
        group = ref.api_version.rpartition("/")[0]
        if informer is None or group not in (informer.resource.gvr.group, "extensions"):
            return None
        obj = informer.store.get(f"{namespace}/{ref.name}")
        found: Object | None = obj if obj is not None and obj.uid == ref.uid else None
        return found

    async def _kind(self, ref: OwnerReference) -> ServedResource:
        """The resource that a reference names. Raises NoMatch, RequestError."""
        group, _, version = ref.api_version.rpartition("/")
        return await self._mapper.kind(group, ref.kind, version)

    async def _from_server(self, served: ServedResource, ref: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """The uid and scale of a controller by its scale subresource. Raises ScaleUnknown for a kind without one."""
        resource: Resource[Scale] = Resource(served.gvr, "Scale", Scale, served.namespaced)
        try:
            scale = await self._client.get(resource, namespace, ref.name, subresource="scale")
        except NotFound:
            if "scale" in served.subresources:
                return None
            raise ScaleUnknown(f"{served.gvr.group_resource} does not implement the scale subresource") from None
        return (scale.uid, scale.spec.replicas) if scale.uid == ref.uid else None


def _size(obj: Object) -> int:
    replicas = getattr(getattr(obj, "spec", None), "replicas", None)
    return 1 if replicas is None else int(replicas)
