"""service-cidr-controller: ranges of service addresses become ready, and do not go while addresses need them.

upstream: pkg/controller/servicecidrs/servicecidrs_controller.go
"""

import asyncio
import logging
from collections.abc import Collection

from kcm_cli.api.core import Condition
from kcm_cli.api.networking import IP_ADDRESSES, SERVICE_CIDRS, IPAddress, ServiceCIDR
from kcm_cli.component.logs import V2
from kcm_cli.controllers.service_cidr import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.actions import APPLY, Notice, Patch, ref_to
from kcm_cli.planning.protection import is_held, lacks
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.listing import list_readable
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

MANAGER = "service-cidr-controller"
WORKERS = 5
MAX_RETRIES = 15


class ServiceCIDRController:
    """Keys are names of ServiceCIDRs."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._recorder = context.recorder
        self._ranges = context.cache(SERVICE_CIDRS)
        self._addresses = context.cache(IP_ADDRESSES)
        self._ending = asyncio.Lock()
        """Two ranges that hold one another's addresses must not go at the same time."""

    async def sync(self, key: str) -> float | None:
        current = self._ranges.store.get(key)
        if current is None:
            return None
        if current.deleting:
            return await self._end(current)
        if lacks(current, plan.FINALIZER):
            await self._patch(plan.protection(current))
        try:
            await self._set(current, plan.READY)
        except RequestError:
            text = "The ServiceCIDR Status can not be set to Ready=True"
            self._recorder.emit(Notice(ref_to(SERVICE_CIDRS, current), "Warning", "KubernetesServiceCIDRError", text))
            raise
        return None

    async def _end(self, current: ServiceCIDR) -> float | None:
        """Let a range go, or say why it may not; seconds to wait."""
        if self._blocks(current, self._ranges.store.list()):
            await self._set(current, plan.BLOCKED)
            return None
        deleted = parse_time(current.metadata.deletion_timestamp or "")
        left_s = plan.GRACE_S - (self._clock.now() - deleted).total_seconds()
        if left_s > 0:
            return left_s
        if is_held(current, plan.FINALIZER):
            await self._release(current)
        return None

    async def _release(self, current: ServiceCIDR) -> None:
        """The other ranges are asked of the server: one that the cache still has may have gone just now."""
        async with self._ending:
            live = await list_readable(self._client, SERVICE_CIDRS)
            if self._blocks(current, live.items):
                await self._set(current, plan.BLOCKED)
            else:
                await self._patch(plan.release(current))

    def _blocks(self, current: ServiceCIDR, ranges: Collection[ServiceCIDR]) -> bool:
        """Whether addresses would be left without a range."""
        orphan = plan.orphan(current, ranges, self._addresses.store)
        if orphan is not None:
            fields = {"ServiceCIDR": current.name, "IPAddress": str(orphan)}
            log.log(V2, "Deleting ServiceCIDR blocked by IP address", extra={"fields": fields})
        return orphan is not None

    async def _set(self, current: ServiceCIDR, condition: Condition) -> None:
        if plan.says(current, condition):
            return
        body = plan.applied(current, condition, self._clock.now())
        query = (("fieldManager", MANAGER), ("force", "true"))
        await self._client.patch(
            SERVICE_CIDRS, "", current.name, body, content_type=APPLY, subresource="status", query=query
        )

    async def _patch(self, patch: Patch) -> None:
        try:
            await writes.patch(self._client, patch)
        except (NotFound, Conflict):
            return  # gone, or another one of this name

    # -- events

    def overlapping(self, one: ServiceCIDR) -> Keys:
        """A new range and those whose addresses it may hold, so that they can go."""
        return {one.name, *plan.overlapping(one, self._ranges.store)}

    def ranges_of(self, obj: IPAddress) -> Keys:
        """The ranges that hold an address."""
        address = plan.address_of(obj)
        return () if address is None else plan.containing(address, self._ranges.store)


def changed(controller: ServiceCIDRController, old: ServiceCIDR, new: ServiceCIDR) -> Keys:
    """The range alone: what it holds never changes."""
    return (new.name,)


CONTROLLER = Controller(
    ServiceCIDRController,
    Queue(
        "ipaddresses",
        Watch(SERVICE_CIDRS, added=ServiceCIDRController.overlapping, updated=changed),
        watches=(Watch(IP_ADDRESSES, added=ServiceCIDRController.ranges_of, deleted=ServiceCIDRController.ranges_of),),
        sync=ServiceCIDRController.sync,
        workers=WORKERS,
        retries=MAX_RETRIES,
    ),
)
