"""service-cidr-controller: marks ServiceCIDRs as ready, and keeps a deleted one, by a finalizer, while addresses need
it.

upstream: pkg/controller/servicecidrs/servicecidrs_controller.go
"""

import asyncio
import logging
from collections.abc import Collection, Iterator
from contextlib import suppress

from kcm_cli.api.core import Condition
from kcm_cli.api.networking import IP_ADDRESSES, SERVICE_CIDRS, IPAddress, ServiceCIDR
from kcm_cli.component.logs import V2
from kcm_cli.controllers.service_cidr import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, StartLines, Watch
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.engine.worker import Failures
from kcm_cli.planning.actions import Notice, Patch, ref_to
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.listing import list_readable
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

WORKERS = 5
MAX_RETRIES = 15
AGAIN_S = 60.0
"""When to look again at a range that is kept for an address which the cache does not show, and perhaps never will."""


class ServiceCIDRController:
    """Keys are names of ServiceCIDRs."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._recorder = context.recorder
        self._ranges = context.cache(SERVICE_CIDRS)
        self._addresses = context.cache(IP_ADDRESSES)
        self._addresses.store.add_index(plan.BLOCK, plan.block_of)
        self._ending = asyncio.Lock()
        """Two ranges that hold each other's addresses must not be released at the same time."""

    async def sync(self, key: str) -> float | None:
        current = self._ranges.store.get(key)
        if current is None:
            return None
        found = self._plan(current, self._ranges.store.list(), self._addresses.store)
        if found.releases:
            async with self._ending:
                addresses = await self._allocated()
                live = await list_readable(self._client, SERVICE_CIDRS)
                current = next((one for one in live.items if one.uid == current.uid), current)
                found = self._plan(current, live.items, addresses)
                await self._carry_out(current, found)
                return AGAIN_S if found.orphan is not None else found.wait_s
        await self._carry_out(current, found)
        return found.wait_s

    async def _allocated(self) -> Store[IPAddress]:
        """The addresses that the API server has. Yields to the loop in between."""
        live = await list_readable(self._client, IP_ADDRESSES)
        allocated: Store[IPAddress] = Store()
        allocated.add_index(plan.BLOCK, plan.block_of)
        async for one in in_turns(live.items, OBJECTS):
            allocated.put(one)
        return allocated

    def _plan(
        self, current: ServiceCIDR, ranges: Collection[ServiceCIDR], addresses: Store[IPAddress]
    ) -> plan.Readiness:
        found = plan.plan(current, ranges, near(current, addresses), self._clock.now())
        if found.orphan is not None:
            fields: dict[str, object] = {"IPAddress": str(found.orphan)}
            log.info("Deleting ServiceCIDR blocked by IP address", extra={"fields": fields})
        elif found.releases:
            fields = {"ServiceCIDR": current.name}
            log.info("Deleting ServiceCIDR no longer have orphan IPs", extra={"fields": fields})
        return found

    async def _carry_out(self, current: ServiceCIDR, found: plan.Readiness) -> None:
        if found.patch is not None:
            await self._patch(found.patch)
        if found.condition is not None and not plan.has_condition(current, found.condition):
            await self._set(current, found.condition)

    async def _set(self, current: ServiceCIDR, condition: Condition) -> None:
        fields = {
            "ServiceCIDR": current.name,
            "conditionType": condition.type,
            "newStatus": condition.status,
            "newReason": condition.reason,
        }
        log.log(V2, "Updating ServiceCIDR condition", extra={"fields": fields})
        try:
            await writes.send(self._client, plan.status(current, condition, self._clock.now()))
        except RequestError:
            if condition is plan.READY:
                text = "The ServiceCIDR Status can not be set to Ready=True"
                ref = ref_to(SERVICE_CIDRS, current)
                self._recorder.emit(Notice(ref, "Warning", "KubernetesServiceCIDRError", text))
            raise

    async def _patch(self, patch: Patch) -> None:
        with suppress(NotFound, Conflict):  # deleted, or another one of this name
            await writes.send(self._client, patch)

    # -- events

    def overlapping(self, one: ServiceCIDR) -> Keys:
        """The names of a new or wider ServiceCIDR and of those that overlap it, which may be deletable now."""
        return {one.name, *plan.overlapping(one, self._ranges.store)}

    def ranges_of(self, obj: IPAddress) -> Keys:
        """The names of the ServiceCIDRs that contain an address."""
        address = plan.address_of(obj)
        return () if address is None else plan.containing(address, self._ranges.store)


def near(one: ServiceCIDR, addresses: Store[IPAddress]) -> Iterator[IPAddress]:
    """The allocated addresses in the blocks that a ServiceCIDR overlaps: all that it contains, and some others."""
    for block in plan.blocks_of(one, addresses.index_values(plan.BLOCK)):
        yield from addresses.by_index(plan.BLOCK, block)


def changed(controller: ServiceCIDRController, old: ServiceCIDR, new: ServiceCIDR) -> Keys:
    """The name of the changed ServiceCIDR; where it has got a network of the other family, also those that overlap
    it."""
    return (new.name,) if old.spec.cidrs == new.spec.cidrs else controller.overlapping(new)


CONTROLLER = Controller(
    ServiceCIDRController,
    Queue(
        "ipaddresses",
        Watch(SERVICE_CIDRS, added=ServiceCIDRController.overlapping, updated=changed),
        watches=(Watch(IP_ADDRESSES, added=ServiceCIDRController.ranges_of, deleted=ServiceCIDRController.ranges_of),),
        writes=(SERVICE_CIDRS,),
        sync=ServiceCIDRController.sync,
        failures=Failures(
            retried="Error syncing ServiceCIDR, retrying",
            level=V2,
            dropped="Dropping ServiceCIDR out of the queue",
            dropped_level=logging.INFO,
            end="ServiceCIDR sync failed after max retries",
            key="ServiceCIDR",
        ),
        workers=WORKERS,
        retries=MAX_RETRIES,
    ),
    announces=(StartLines("Starting", "Shutting down", (("controller", "service-cidr-controller"),)),),
)
