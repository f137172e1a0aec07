"""The scheduler's state of devices: claims, classes, slices, and allocated devices.

Devices that are assumed for a pod count as allocated until the claim shows it, or the pod has failed.

upstream: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from kcm_cli.planning.quota.devices import BY_POD, by_pod
from kcm_cli.planning.resource_claims import NotCreated, NotNeeded, named, not_for
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.scheduler.devices.extended import offers
from kcm_cli.sandbox.scheduler.devices.pools import Inventory
from kcm_cli.sandbox.scheduler.devices.usage import Usage
from kcm_cli.sandbox.scheduler.devices.views import Claim, DeviceClass, Result, Slice
from kcm_cli.sandbox.views import SimulatedPod


class DeviceState:
    """The state, updated from informers. ``pending``: the uids of claims that are being written."""

    def __init__(
        self,
        claims: Store[Claim],
        classes: Store[DeviceClass],
        slices: Store[Slice],
        now: Callable[[], datetime] = lambda: datetime.min.replace(tzinfo=UTC),
    ) -> None:
        """``now``: the clock for the timeout of binding conditions."""
        self.now = now
        self.claims, self.classes, self._slices = claims, classes, slices
        self.usage = Usage()
        self.pending: set[str] = set()
        self._inventory: Inventory | None = None
        self._offers: Mapping[str, str] | None = None
        claims.add_index(BY_POD, by_pod)

    @property
    def offers(self) -> Mapping[str, str]:
        """The names of classes by the extended resource that they provide."""
        if self._offers is None:
            self._offers = offers(self.classes)
        return self._offers

    def offered(self, requests: Mapping[str, int]) -> frozenset[str]:
        """The requested resources that a class provides."""
        known = self.offers
        return frozenset(name for name, amount in requests.items() if amount > 0 and name in known)

    def classes_changed(self) -> None:
        self._offers = None

    @property
    def inventory(self) -> Inventory:
        if self._inventory is None:
            self._inventory = Inventory(self._slices)
        return self._inventory

    def slices_changed(self) -> None:
        self._inventory = None

    def claim_changed(self, claim: Claim) -> None:
        """Update the state with the present version of a claim."""
        if claim.status.allocation is not None:
            self.pending.discard(claim.uid)
            self.usage.hold(claim.uid, claim.status.allocation.devices.results)
        elif claim.uid not in self.pending:
            self.usage.release(claim.uid)

    def claim_deleted(self, claim: Claim) -> None:
        self.pending.discard(claim.uid)
        self.usage.release(claim.uid)

    def promise(self, claim: Claim, results: tuple[Result, ...]) -> None:
        """Assume these devices for a claim that is about to be written."""
        self.pending.add(claim.uid)
        self.usage.hold(claim.uid, results)

    def take_back(self, claim: Claim) -> None:
        """Undo ``promise``."""
        if claim.uid in self.pending:
            self.pending.discard(claim.uid)
            self.usage.release(claim.uid)

    def extended_claim(self, pod: SimulatedPod) -> Claim | None:
        """The claim that an earlier attempt created for a pod's extended resources, or None."""
        found = self.claims.by_index(BY_POD, pod.uid)
        return next((claim for claim in found if claim.namespace == pod.namespace), None)

    def claims_of(self, pod: SimulatedPod) -> tuple[Claim, ...] | str:
        """The claims that a pod uses, or a text that says why they do not all exist."""
        found: list[Claim] = []
        for entry in pod.spec.resource_claims:
            reference = named(pod, entry)
            if isinstance(reference, NotCreated):
                return f'pod "{pod.key}": ResourceClaim not created yet'
            if isinstance(reference, NotNeeded):
                continue
            claim = self.claims.get(f"{pod.namespace}/{reference.name}")
            if claim is None:
                return f'could not find ResourceClaim "{pod.namespace}/{reference.name}"'
            if claim.deleting:
                return f'resourceclaim "{claim.name}" is being deleted'
            problem = not_for(pod, claim, groups=False) if reference.generated else ""
            if problem:
                return problem
            found.append(claim)
        return tuple(found)


def no_devices() -> DeviceState:
    """The state of a cluster without devices."""
    return DeviceState(Store(), Store(), Store())
