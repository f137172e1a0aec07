"""What the scheduler knows of devices: claims, classes and slices, and who has which device.

What was promised to a pod on its way counts as taken until the claim shows it, or the pod has failed.

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
    """See the module. Kept from informers; ``pending`` are the uids of claims on their way."""

    def __init__(
        self,
        claims: Store[Claim],
        classes: Store[DeviceClass],
        slices: Store[Slice],
        now: Callable[[], datetime] = lambda: datetime.min.replace(tzinfo=UTC),
    ) -> None:
        """``now``: of the clock by which devices are to be prepared."""
        self.now = now
        self.claims, self.classes, self._slices = claims, classes, slices
        self.usage = Usage()
        self.pending: set[str] = set()
        self._inventory: Inventory | None = None
        self._offers: Mapping[str, str] | None = None
        claims.add_index(BY_POD, by_pod)

    @property
    def offers(self) -> Mapping[str, str]:
        """The names of the classes whose devices extended resources stand for."""
        if self._offers is None:
            self._offers = offers(self.classes)
        return self._offers

    def offered(self, requests: Mapping[str, int]) -> frozenset[str]:
        """The resources among those asked for that a class offers."""
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
        """As it is now."""
        if claim.status.allocation is not None:
            self.pending.discard(claim.uid)
            self.usage.hold(claim.uid, claim.status.allocation.devices.results)
        elif claim.uid not in self.pending:
            self.usage.release(claim.uid)

    def claim_deleted(self, claim: Claim) -> None:
        self.pending.discard(claim.uid)
        self.usage.release(claim.uid)

    def promise(self, claim: Claim, results: tuple[Result, ...]) -> None:
        """The devices go to a claim as soon as it can be written."""
        self.pending.add(claim.uid)
        self.usage.hold(claim.uid, results)

    def take_back(self, claim: Claim) -> None:
        """A promise that came to nothing."""
        if claim.uid in self.pending:
            self.pending.discard(claim.uid)
            self.usage.release(claim.uid)

    def extended_claim(self, pod: SimulatedPod) -> Claim | None:
        """The claim that was made for a pod's extended resources when it was to be bound before."""
        found = self.claims.by_index(BY_POD, pod.uid)
        return next((claim for claim in found if claim.namespace == pod.namespace), None)

    def claims_of(self, pod: SimulatedPod) -> tuple[Claim, ...] | str:
        """The claims that a pod uses; a text says why they are not all there."""
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
    """Of a cluster without any."""
    return DeviceState(Store(), Store(), Store())
