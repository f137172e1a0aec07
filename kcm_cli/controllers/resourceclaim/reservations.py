"""Removes the reservations of consumers that were deleted or have ended, and the allocation with the last one.

Every write has the resourceVersion that it was decided on as a precondition, so that no concurrent reservation by the
scheduler is lost.

upstream: pkg/controller/resourceclaim/controller.go#syncClaim, #reserveFor
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.devices import RESOURCE_CLAIMS, Consumer, ResourceClaim
from kcm_cli.api.resource import Resource
from kcm_cli.api.scheduling import POD_GROUPS
from kcm_cli.controllers.resourceclaim.plan import RESERVED, Caches, Lister, is_done, owning_pod, plan_claim
from kcm_cli.engine.door import Door
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.recent import Recent
from kcm_cli.planning.actions import Path, Value, edited
from kcm_cli.planning.protection import release
from kcm_cli.planning.resource_claims import FINALIZER, is_group, is_pod, user_doc, users_of
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.store import Store

AGAIN_S = 60.0
"""When to look again at a claim with a consumer that the cache does not show, and perhaps never will: it may be gone
before the cache is filled anew."""


class Reservations:
    """Reads and writes reservations. ``deleted``: the uids of pods and PodGroups whose deletion was observed."""

    def __init__(self, client: Door, caches: Caches, pods: Store[Pod], deleted: Recent) -> None:
        self._client = client
        self._caches = caches
        self._pods = pods
        self._deleted = deleted

    async def sync(self, claim: ResourceClaim) -> float | None:
        """Remove reservations that are over, then deallocate or delete the claim if it is unused. Returns the seconds
        until the next check, where the end of a consumer may bring no event."""
        reserved = claim.status.reserved_for
        held = await asyncio.gather(*(self._is_held(claim, consumer) for consumer in reserved))
        remaining = [consumer.uid for consumer, is_held in zip(reserved, held, strict=True) if is_held]
        changes = plan_claim(claim, remaining)
        if changes:
            claim = await self._put(claim, changes)
        freed = bool(changes) or (claim.deleting and not remaining)
        if freed and claim.status.allocation is None and FINALIZER in claim.metadata.finalizers:
            claim = await self._free(claim)
        if not remaining:
            await self._remove_unused(claim)
        unseen = any(
            is_held and not self._is_followed(claim, consumer) for consumer, is_held in zip(reserved, held, strict=True)
        )
        return AGAIN_S if unseen else None

    async def add(self, claim: ResourceClaim, consumer: Consumer) -> None:
        """Reserve an allocated claim. Raises Conflict if it has changed."""
        await self._put(claim, {RESERVED: [*users_of(claim), user_doc(consumer)]})

    async def _is_held(self, claim: ResourceClaim, consumer: Consumer) -> bool:
        """Whether a consumer may still use the claim. True for consumers of unknown kinds."""
        resource, store = self._kind_of(consumer)
        return store is None or await self._uses(resource, store, claim.namespace, consumer.name, consumer.uid)

    def _is_followed(self, claim: ResourceClaim, consumer: Consumer) -> bool:
        """Whether the cache shows a consumer, so that its end is an event. Consumers of unknown kinds have none."""
        _, store = self._kind_of(consumer)
        user: Object | None = store.get(f"{claim.namespace}/{consumer.name}") if store is not None else None
        return store is None or (user is not None and user.uid == consumer.uid)

    def _kind_of(self, consumer: Consumer) -> tuple[Resource[Any], Lister[Any] | None]:
        """The kind of a consumer, and its cache; None for kinds that are not known here."""
        if is_group(consumer):
            return POD_GROUPS, self._caches.pod_groups
        return PODS, self._pods if is_pod(consumer) else None

    async def _uses(self, resource: Resource[Any], store: Lister[Any], namespace: str, name: str, uid: str) -> bool:
        """Whether a pod or PodGroup exists, and may use claims.

        One that the cache does not have is looked up, also where that has another one of its name: claims come by a
        watch of their own, and may be ahead.
        """
        if uid in self._deleted:
            return False
        user: Object | None = store.get(f"{namespace}/{name}")
        if user is None or user.uid != uid:
            user = await self._client.find(resource, namespace, name, metadata_only=True)
            return user is not None and user.uid == uid
        return not (isinstance(user, Pod) and is_done(user))

    async def _put(self, claim: ResourceClaim, changes: Mapping[Path, Value]) -> ResourceClaim:
        body = edited(claim, changes)
        return await self._client.update(
            RESOURCE_CLAIMS, claim.namespace, claim.name, body, subresource="status", reason="consumers changed"
        )

    async def _free(self, claim: ResourceClaim) -> ResourceClaim:
        """Remove the finalizer of a claim without an allocation."""
        changes = release(RESOURCE_CLAIMS, claim, FINALIZER).changes
        body = edited(claim, changes)
        return await self._client.update(
            RESOURCE_CLAIMS, claim.namespace, claim.name, body, reason="claim is not allocated any more"
        )

    async def _remove_unused(self, claim: ResourceClaim) -> None:
        """Delete a claim that was created for a pod that has ended but still exists, or for an earlier one of its name.

        If the cache has no pod of the name it may be new, and the claim is left to the garbage collector.
        """
        ref = owning_pod(claim)
        if claim.deleting or ref is None or self._pods.get(f"{claim.namespace}/{ref.name}") is None:
            return
        if await self._uses(PODS, self._pods, claim.namespace, ref.name, ref.uid):
            return
        version = claim.metadata.resource_version
        with suppress(NotFound):
            await self._client.delete(
                RESOURCE_CLAIMS,
                claim.namespace,
                claim.name,
                uid=claim.uid,
                resource_version=version,
                reason="the pod it was created for has ended",
            )
