"""The tainted devices of all pools, updated with every change.

A module of its own: a pool's taints are spread over several slices, of which those of the latest generation count.
"""

from collections.abc import Iterable, Iterator

from kcm_cli.api.devices import AllocatedDevice, Device, DeviceTaint, DeviceTaintRule, ResourceClaim, ResourceSlice
from kcm_cli.controllers.device_taint_eviction.plan import Eviction, Tainting, eviction, matches
from kcm_cli.planning.tolerations import NO_EXECUTE

PoolId = tuple[str, str]
"""Driver and pool."""
_Taints = dict[str, tuple[DeviceTaint, ...]]


class Pool:
    """The slices of a pool. Those of the highest generation count."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.tainted: _Taints = {}

    def devices(self) -> Iterator[Device]:
        latest = max((one.spec.pool.generation for one in self.slices.values()), default=0)
        for one in self.slices.values():
            if one.spec.pool.generation == latest:
                yield from one.spec.devices

    def refresh(self) -> bool:
        """Recompute the taints. Returns whether they changed."""
        before, self.tainted = self.tainted, _tainted(self.devices())
        return before != self.tainted


class Taints:
    """All pools, and the rules that evict pods."""

    def __init__(self) -> None:
        self.pools: dict[PoolId, Pool] = {}
        self.rules: dict[str, DeviceTaintRule] = {}

    def put(self, slice_: ResourceSlice) -> bool:
        """Add or update a slice. Returns whether taints in its pool changed."""
        pool = self.pools.setdefault(pool_of(slice_), Pool())
        pool.slices[slice_.name] = slice_
        return pool.refresh()

    def drop(self, slice_: ResourceSlice) -> bool:
        """Remove a slice. Returns whether taints in its pool changed."""
        pool = self.pools.get(pool_of(slice_))
        if pool is None or pool.slices.pop(slice_.name, None) is None:
            return False
        if not pool.slices:
            del self.pools[pool_of(slice_)]
        return pool.refresh()

    def eviction_of(self, claim: ResourceClaim, rules: Iterable[DeviceTaintRule] | None = None) -> Eviction | None:
        """When a claim's users have to be evicted; None for never. ``rules``: these instead of the present ones."""
        allocation = claim.status.allocation
        if allocation is None:
            return None
        chosen = tuple(self.rules.values() if rules is None else rules)
        devices = allocation.devices.results
        return eviction((device, found) for device in devices for found in self._of(device, chosen))

    def _of(self, device: AllocatedDevice, rules: Iterable[DeviceTaintRule]) -> Iterator[Tainting]:
        pool = self.pools.get((device.driver, device.pool))
        if pool is not None:
            yield from map(Tainting, pool.tainted.get(device.device, ()))
        for rule in rules:
            if matches(rule, device.driver, device.pool, device.device):
                taint = rule.spec.taint
                yield Tainting(DeviceTaint(taint.key, taint.value, NO_EXECUTE, taint.time_added), (rule.name, rule.uid))

    def published(self, rule: DeviceTaintRule) -> int:
        """The number of published devices that a rule selects."""
        return sum(matches(rule, *place, one.name) for place, pool in self.pools.items() for one in pool.devices())


def allocated(rule: DeviceTaintRule, claims: Iterable[ResourceClaim]) -> int:
    """The number of allocated devices that a rule selects."""
    return sum(matches(rule, one.driver, one.pool, one.device) for claim in claims for one in devices_of(claim))


def devices_of(claim: ResourceClaim) -> tuple[AllocatedDevice, ...]:
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None else ()


def pool_of(slice_: ResourceSlice) -> PoolId:
    return slice_.spec.driver, slice_.spec.pool.name


def _tainted(devices: Iterable[Device]) -> _Taints:
    found: _Taints = {}
    for device in devices:
        taints = tuple(taint for taint in device.taints if taint.effect == NO_EXECUTE)
        if taints:
            found[device.name] = taints
    return found
