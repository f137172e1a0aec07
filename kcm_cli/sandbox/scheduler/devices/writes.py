"""Writes claims: allocations with reservations, and the removal of reservations.

For extended resources a claim is created, named in the pod's status, and deleted if the pod is not bound.

upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go#bindClaim, #Unreserve,
pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go
"""

import logging
from collections.abc import Awaitable, Sequence

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import ABSENT, STRATEGIC_MERGE, Path, Value, edited
from kcm_cli.planning.resource_claims import FINALIZER, consumer_of, is_reserved_for, user_doc, users_of
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError, Conflict, NotFound
from kcm_cli.rest.transport import RequestError, TransportError
from kcm_cli.sandbox.scheduler.devices.results import Reservation
from kcm_cli.sandbox.scheduler.devices.views import CLAIMS, Claim
from kcm_cli.sandbox.views import POD_METADATA, SimulatedPod

log = logging.getLogger(__name__)
ATTEMPTS = 5
_STATUS = "status"


class ClaimProblem(Exception):
    """A claim changed after the pod's node was chosen. The text goes into the pod's condition."""


class ClaimWrites:
    """One client's writes to claims."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def create(self, pod: SimulatedPod, claim: Claim) -> Claim:
        """Create the claim for a pod's extended resources; returns the API server's version. Raises ClaimProblem.

        After a lost answer the claim is found and deleted when the pod is retried.
        """
        body = edited(claim, {("metadata", "name"): ABSENT, ("metadata", "uid"): ABSENT})
        try:
            return await self._client.create(CLAIMS, pod.namespace, body)
        except RequestError as error:
            raise ClaimProblem(f"create claim for extended resources {pod.namespace}/: {error}") from error

    async def name_in_status(self, pod: SimulatedPod, claim: Claim, mappings: Sequence[Doc]) -> None:
        """Write the name of the claim into the pod's status. Raises ClaimProblem."""
        status: Doc = {"resourceClaimName": claim.name, "requestMappings": [*mappings]}
        body: Doc = {"metadata": {"uid": pod.uid}, _STATUS: {"extendedResourceClaimStatus": status}}
        for attempt in range(ATTEMPTS):
            try:
                await self._client.patch(
                    POD_METADATA, pod.namespace, pod.name, body, content_type=STRATEGIC_MERGE, subresource=_STATUS
                )
                return
            except RequestError as error:
                if attempt == ATTEMPTS - 1 or not isinstance(error, TransportError):
                    raise ClaimProblem(f"update pod {pod.key} ExtendedResourceClaimStatus: {error}") from error

    async def delete(self, claim: Claim) -> None:
        """Delete a claim for extended resources and its allocation. Failures are retried with the pod."""
        uid = claim.uid
        try:
            for attempt in range(ATTEMPTS):
                claim = await self._client.get(CLAIMS, claim.namespace, claim.name)
                if claim.uid != uid or FINALIZER not in claim.metadata.finalizers:
                    break
                others = [name for name in claim.metadata.finalizers if name != FINALIZER]
                body = edited(claim, {("metadata", "finalizers"): others})
                try:
                    await self._client.update(CLAIMS, claim.namespace, claim.name, body)
                    break
                except (Conflict, TransportError):
                    if attempt == ATTEMPTS - 1:
                        raise
            await self._client.delete(CLAIMS, claim.namespace, claim.name, uid=uid)
        except NotFound:
            return
        except RequestError as error:
            log.info("Cannot delete a claim", extra={"fields": {"claim": claim.key, "err": str(error)}})

    async def reserve(self, pod: SimulatedPod, reservation: Reservation) -> None:
        """Reserve a claim. Raises ClaimProblem."""
        claim, uid = reservation.claim, reservation.claim.uid
        for attempt in range(ATTEMPTS):
            try:
                await self._reserve(pod, claim, reservation.allocation)
                return
            except (Conflict, TransportError) as error:  # it may have been written all the same
                if attempt == ATTEMPTS - 1:
                    raise ClaimProblem(str(error)) from error
            try:
                claim = await self._client.get(CLAIMS, claim.namespace, claim.name)
            except RequestError as error:
                raise ClaimProblem(f"get updated claim {claim.key} after conflict: {error}") from error
            if claim.uid != uid:
                raise ClaimProblem(f"claim {claim.key} got deleted in the meantime")

    async def _reserve(self, pod: SimulatedPod, claim: Claim, allocation: Doc | None) -> None:
        """Raises ClaimProblem, Conflict, TransportError."""
        if claim.status.allocation is not None and is_reserved_for(pod, claim.status.reserved_for, groups=False):
            return  # an earlier try got through, though its answer was lost
        if claim.deleting:
            raise ClaimProblem(f"claim {claim.key} got deleted in the meantime")
        if allocation is None and claim.status.allocation is None:
            raise ClaimProblem(f"claim {claim.key} got deallocated elsewhere in the meantime")
        if allocation is not None:
            if claim.status.allocation is not None:
                raise ClaimProblem(f"claim {claim.key} got allocated elsewhere in the meantime")
            if FINALIZER not in claim.metadata.finalizers:
                finalizers = [*claim.metadata.finalizers, FINALIZER]
                change: dict[Path, Value] = {("metadata", "finalizers"): finalizers}
                claim = await self._put(claim, change, "", f"add finalizer to claim {claim.key}")
        user = user_doc(consumer_of(pod))
        changes: dict[Path, Value] = {(_STATUS, "reservedFor"): [*users_of(claim), user]}
        what = "reservation"
        if allocation is not None:
            stamp = format_time(self._clock.now())
            changes[_STATUS, "allocation"] = {**allocation, "allocationTimestamp": stamp}
            what = "allocation and reservation"
        await self._put(claim, changes, _STATUS, f"add {what} to claim {claim.key}")

    async def unreserve(self, pod: SimulatedPod, claim: Claim) -> None:
        """Remove the reservation of a pod that was not bound. Failures are left to the resourceclaim-controller."""
        entry: Doc = {"$patch": "delete", "uid": pod.uid}
        body: Doc = {"metadata": {"uid": claim.uid}, _STATUS: {"reservedFor": [entry]}}
        await self._try(
            claim,
            self._client.patch(
                CLAIMS, claim.namespace, claim.name, body, content_type=STRATEGIC_MERGE, subresource=_STATUS
            ),
        )

    async def deallocate(self, claim: Claim) -> None:
        """Remove the allocation of an unused claim whose devices are where the pod cannot run."""
        places = ("reservedFor", "allocation", "devices")
        body = edited(claim, {(_STATUS, place): ABSENT for place in places})
        await self._try(claim, self._client.update(CLAIMS, claim.namespace, claim.name, body, subresource=_STATUS))

    async def _try(self, claim: Claim, write: Awaitable[Claim]) -> None:
        try:
            await write
        except RequestError as error:
            log.info("Cannot write a claim", extra={"fields": {"claim": claim.key, "err": str(error)}})

    async def _put(self, claim: Claim, changes: dict[Path, Value], subresource: str, what: str) -> Claim:
        try:
            body = edited(claim, changes)
            return await self._client.update(CLAIMS, claim.namespace, claim.name, body, subresource=subresource)
        except Conflict:
            raise
        except ApiError as error:
            raise ClaimProblem(f"{what}: {error}") from error
