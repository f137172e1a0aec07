"""The scheduler's DynamicResources: updates the state of devices from informers, wakes waiting pods, writes claims.

upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
"""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from kcm_cli.component.clock import Clock
from kcm_cli.planning.resource_claims import claim_keys
from kcm_cli.sandbox.scheduler import hints
from kcm_cli.sandbox.scheduler.device_filter import PLUGIN
from kcm_cli.sandbox.scheduler.devices.binding import TIMEOUT, NotPrepared, has_conditions, is_prepared
from kcm_cli.sandbox.scheduler.devices.results import Reservation, view_of
from kcm_cli.sandbox.scheduler.devices.state import DeviceState
from kcm_cli.sandbox.scheduler.devices.views import Claim, DeviceClass
from kcm_cli.sandbox.scheduler.devices.writes import ClaimProblem, ClaimWrites
from kcm_cli.sandbox.scheduler.listers import Listers
from kcm_cli.sandbox.scheduler.queue import SchedulingQueue
from kcm_cli.sandbox.views import SimulatedPod

_BY_CLAIM = "resource claim"
POLL_S = 5.0
_WAITING = frozenset((PLUGIN,))


class DynamicResources:
    """``wants_node``: called for pods whose claims may all exist now."""

    def __init__(
        self,
        state: DeviceState,
        writes: ClaimWrites,
        clock: Clock,
        listers: Listers,
        queue: SchedulingQueue,
        wants_node: Callable[[SimulatedPod], None],
    ) -> None:
        self._state, self._writes, self._clock, self._queue = state, writes, clock, queue
        self._pods, self._wants_node = listers.pods.store, wants_node
        self._made: dict[str, Claim] = {}
        self._pods.add_index(_BY_CLAIM, claim_keys)
        listers.resource_claims.listen(on_add=self._claim, on_update=self._claim_updated, on_delete=self._claim_deleted)
        listers.slices.listen(on_add=self._slice, on_update=lambda _, new: self._slice(new), on_delete=self._slice)
        listers.device_classes.listen(
            on_add=lambda new: self._class(None, new), on_update=self._class, on_delete=self._class_deleted
        )

    def is_ready(self, pod: SimulatedPod) -> bool:
        """Whether all claims of a pod exist. Before that the pod is not scheduled, and nothing is reported."""
        return not pod.spec.resource_claims or not isinstance(self._state.claims_of(pod), str)

    def promise(self, reservations: tuple[Reservation, ...]) -> None:
        for one in reservations:
            if one.allocation is not None:
                self._state.promise(one.claim, view_of(one.allocation).devices.results)

    async def reserve(self, pod: SimulatedPod, reservations: tuple[Reservation, ...]) -> str:
        """Write the claims. Returns the error as text; empty on success."""
        for one in reservations:
            try:
                if one.mappings:
                    await self._make(pod, one)
                else:
                    await self._writes.reserve(pod, one)
            except ClaimProblem as error:
                return str(error)
        return ""

    async def _make(self, pod: SimulatedPod, wanted: Reservation) -> None:
        """Create the claim for a pod's extended resources. Raises ClaimProblem."""
        claim = await self._writes.create(pod, wanted.claim)
        self._made[pod.uid] = claim
        made = replace(wanted, claim=claim)
        self.promise((made,))
        self._state.take_back(wanted.claim)
        await self._writes.reserve(pod, made)
        await self._writes.name_in_status(pod, claim, wanted.mappings)

    def bound(self, pod: SimulatedPod) -> None:
        """The pod was bound: its claims are kept."""
        self._made.pop(pod.uid, None)

    def waits(self, pod: SimulatedPod, reservations: tuple[Reservation, ...]) -> bool:
        """Whether a device of the pod has binding conditions."""
        if not pod.spec.resource_claims and not reservations:
            return False
        claims = self._state.claims_of(pod)
        new = (view_of(one.allocation) for one in reservations if one.allocation is not None)
        old = () if isinstance(claims, str) else (one.status.allocation for one in claims)
        return any(has_conditions(one.devices.results) for one in (*new, *old) if one is not None)

    async def prepared(self, pod: SimulatedPod) -> str:
        """Wait until the pod's devices are prepared. Returns the error as text; empty on success."""
        deadline = self._clock.monotonic() + TIMEOUT.total_seconds()
        while self._clock.monotonic() < deadline:
            claims = self._state.claims_of(pod)
            if isinstance(claims, str):
                return claims
            made = self._made.get(pod.uid)
            if made is not None:
                claims = (*claims, self._state.claims.get(made.key) or made)
            try:
                if all([is_prepared(claim, self._clock.now()) for claim in claims]):
                    return ""
            except NotPrepared as error:
                return str(error)
            await self._clock.sleep(POLL_S)
        return "device binding timeout: context deadline exceeded"

    async def give_up(self, pod: SimulatedPod, reservations: tuple[Reservation, ...]) -> None:
        """The pod was not bound: release its devices, and remove its reservations."""
        for one in reservations:
            self._state.take_back(one.claim)
        undo = [self._writes.unreserve(pod, one.claim) for one in reservations if not one.mappings]
        made = self._made.pop(pod.uid, None)
        if made is not None:
            self._state.take_back(made)
            undo.append(self._writes.delete(made))
        await asyncio.gather(*undo)
        if reservations:
            self._queue.wake(_WAITING)

    async def deallocate(self, claim: Claim) -> None:
        await self._writes.deallocate(claim)

    async def delete(self, claim: Claim) -> None:
        """Delete the claim for extended resources of a pod that was not bound."""
        await self._writes.delete(claim)

    # -- events

    def _claim(self, claim: Claim) -> None:
        self._state.claim_changed(claim)
        self._used_by(claim)

    def _claim_updated(self, old: Claim, new: Claim) -> None:
        self._state.claim_changed(new)
        if old.status.allocation is not None and new.status.allocation is None:
            self._queue.wake(_WAITING)
        elif old.status != new.status or old.deleting != new.deleting:
            self._used_by(new)

    def _claim_deleted(self, claim: Claim) -> None:
        self._state.claim_deleted(claim)
        self._queue.wake(_WAITING)
        self._used_by(claim)

    def _used_by(self, claim: Claim) -> None:
        for pod in self._pods.by_index(_BY_CLAIM, claim.key):
            if not pod.spec.node_name:
                self._wants_node(pod)
        self._queue.wake_where(lambda waiting, by: PLUGIN in by and claim.key in claim_keys(waiting.pod))

    def _slice(self, _: object) -> None:
        self._state.slices_changed()
        self._queue.wake(_WAITING)

    def _class(self, old: DeviceClass | None, new: DeviceClass) -> None:
        self._state.classes_changed()
        self._queue.wake(_WAITING)
        self._queue.wake_where(hints.class_changed(old, new))

    def _class_deleted(self, _: object) -> None:
        self._state.classes_changed()
        self._queue.wake(_WAITING)
