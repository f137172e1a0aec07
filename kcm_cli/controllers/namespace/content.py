"""Deletes the content of a namespace, in passes: pods first, everything else when they are gone.

A module of its own, since it does I/O only: it lists and deletes resource by resource, as discovery lists them.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from kcm_cli.api.core import PODS, Namespace
from kcm_cli.component.clock import Clock
from kcm_cli.controllers.namespace.plan import FINALIZER_ESTIMATE_S, Remains, grace_s
from kcm_cli.engine.door import Door
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError, MethodNotSupported, NotFound
from kcm_cli.rest.listing import list_readable
from kcm_cli.rest.served_resources import ServedResource
from kcm_cli.rest.transport import RequestError

REASON = "namespace is being deleted"
PARALLEL = 8
"""Kinds that are deleted at the same time."""

_MISSING = (MethodNotSupported, NotFound)
_FAILED = RequestError


class Content:
    """Deletes the content of namespaces. upstream: namespacedResourcesDeleter.

    exists: whether the cache shows a namespace, by its uid. A pass ends when it does not: requests name a namespace,
    not its uid, and another one may have the name. A pass takes minutes where a webhook or an aggregated API does not
    answer, which is when people finalize a namespace by hand. Upstream then deletes the content of the next one.
    """

    def __init__(self, client: Door, clock: Clock, exists: Callable[[Namespace], bool], *, pods_first: bool) -> None:
        self._client = client
        self._clock = clock
        self._exists = exists
        self._pods_first = pods_first

    async def delete(self, namespace: Namespace) -> Remains:
        """Run one pass. Returns what remains, and the errors; of no meaning if the namespace does not exist by then."""
        remains = Remains()
        resources = await self._resources(remains)
        pods = [r for r in resources if r.gvr == PODS.gvr]
        if self._pods_first and pods:
            await self._resource(pods[0], namespace, remains)
            if remains.resources:
                remains.pods_only = True
                return remains
            resources = [r for r in resources if r.gvr != PODS.gvr]
        limit = asyncio.Semaphore(PARALLEL)

        async def one(resource: ServedResource) -> None:
            async with limit:
                await self._resource(resource, namespace, remains)

        await asyncio.gather(*map(one, resources))
        return remains

    async def _resources(self, remains: Remains) -> list[ServedResource]:
        try:
            found = await discover(self._client)
        except _FAILED as error:
            remains.discovery_error = str(error)
            return []
        if found.failed:
            each = ", ".join(f"{version}: {why}" for version, why in sorted(found.failed.items()))
            remains.discovery_error = (
                f"Discovery failed for some groups, {len(found.failed)} failing: "
                f"unable to retrieve the complete list of server APIs: {each}"
            )
        return [r for r in found.preferred() if r.namespaced and r.supports("delete")]

    async def _resource(self, resource: ServedResource, namespace: Namespace, remains: Remains) -> None:
        try:
            await self._delete_all(resource, namespace, remains)
        except _FAILED as error:
            remains.content_errors.append(str(error))

    async def _delete_all(self, resource: ServedResource, namespace: Namespace, remains: Remains) -> None:
        name = namespace.name
        estimate = await self._grace_s(namespace) if resource.gvr == PODS.gvr else 0
        if not self._exists(namespace):
            return
        if not resource.supports("deletecollection") or not await self._collection(resource, name):
            await self._one_by_one(resource, namespace)
        left = await self._list(resource, name)
        if not left:
            return
        plural, group = resource.gvr.plural, resource.gvr.group
        remains.resources[f"{plural}.{group}"] += len(left)
        for meta in left:
            remains.finalizers.update(meta.finalizers)
        if not estimate:
            if not any(meta.finalizers for meta in left):
                gvr = f"{group}/{resource.gvr.version}, Resource={plural}"
                raise _unexpected(f"unexpected items still remain in namespace: {name} for gvr: {gvr}")
            estimate = FINALIZER_ESTIMATE_S
        remains.estimate_s = max(remains.estimate_s, estimate)

    async def _grace_s(self, namespace: Namespace) -> int:
        pods = await list_readable(self._client, PODS, namespace.name)
        return grace_s(pods.items, namespace.metadata.deletion_timestamp or "", self._clock.now())

    async def _collection(self, resource: ServedResource, namespace: str) -> bool:
        try:
            await self._client.delete_collection(resource.partial(), namespace, propagation="Background", reason=REASON)
        except _MISSING:
            return False
        return True

    async def _one_by_one(self, resource: ServedResource, namespace: Namespace) -> None:
        name = namespace.name
        for meta in await self._list(resource, name):
            if not self._exists(namespace):
                return
            with suppress(*_MISSING):
                await self._client.delete(resource.partial(), name, meta.name, propagation="Background", reason=REASON)

    async def _list(self, resource: ServedResource, namespace: str) -> list[ObjectMeta]:
        """The metadata of a resource's objects, including those that cannot be decoded."""
        if not resource.supports("list"):
            return []
        try:
            found = await list_readable(self._client, resource.partial(), namespace, metadata_only=True)
        except _MISSING:
            return []
        return [obj.metadata for obj in found.items] + [obj.metadata for obj in found.unknown]


def _unexpected(message: str) -> ApiError:
    return ApiError(500, "", message)
