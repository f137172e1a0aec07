"""The tainted devices of all pools, updated with every change.

A module of its own: a pool's taints are spread over several slices, of which those of the latest generation count.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import product

from kcm_cli.api.devices import AllocatedDevice, Device, DeviceTaint, DeviceTaintRule, ResourceClaim, ResourceSlice
from kcm_cli.controllers.device_taint_eviction.plan import Eviction, Tainting, eviction, matches
from kcm_cli.planning.tolerations import NO_EXECUTE

PoolId = tuple[str, str]
"""Driver and pool."""
Names = tuple[str | None, str | None, str | None]
"""Driver, pool and device of a selector; None where it selects any."""
_Taints = dict[str, tuple[DeviceTaint, ...]]


class Pool:
    """The slices of a pool. Those of the highest generation count. A change of one looks at the devices of no other."""

    def __init__(self) -> None:
        self.tainted: _Taints = {}
        self._slices: dict[str, tuple[ResourceSlice, _Taints]] = {}

    def __bool__(self) -> bool:
        return bool(self._slices)

    def put(self, slice_: ResourceSlice) -> bool:
        """Add or update a slice. Returns whether the taints changed."""
        self._slices[slice_.name] = slice_, _tainted(slice_.spec.devices)
        return self._refresh()

    def drop(self, name: str) -> bool:
        """Remove a slice. Returns whether the taints changed."""
        return self._slices.pop(name, None) is not None and self._refresh()

    def devices(self) -> Iterator[Device]:
        for one, _ in self._latest():
            yield from one.spec.devices

    def tainting(self, device: str) -> Iterator[ResourceSlice]:
        """The slices that taint a device."""
        return (one for one, tainted in self._latest() if device in tainted)

    def _latest(self) -> Iterator[tuple[ResourceSlice, _Taints]]:
        latest = max((one.spec.pool.generation for one, _ in self._slices.values()), default=0)
        return (found for found in self._slices.values() if found[0].spec.pool.generation == latest)

    def _refresh(self) -> bool:
        before, self.tainted = self.tainted, {}
        for _, tainted in self._latest():
            self.tainted.update(tainted)
        return before != self.tainted


class Rules:
    """Rules by what their selectors name, so that those of a device are found whatever their number."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}
        self._selecting: dict[Names, dict[str, DeviceTaintRule]] = {}

    def put(self, rule: DeviceTaintRule) -> None:
        """Add a rule, or replace the one of its name."""
        self.pop(rule.name)
        self._rules[rule.name] = rule
        if (names := names_of(rule)) is not None:
            self._selecting.setdefault(names, {})[rule.name] = rule

    def pop(self, name: str) -> DeviceTaintRule | None:
        """Remove the rule of a name, and return it."""
        rule = self._rules.pop(name, None)
        names = names_of(rule) if rule is not None else None
        if names is not None:
            del self._selecting[names][name]
            if not self._selecting[names]:
                del self._selecting[names]
        return rule

    def of(self, device: AllocatedDevice) -> Iterator[DeviceTaintRule]:
        """The rules that select a device."""
        for names in _selecting(device):
            yield from self._selecting.get(names, {}).values()


class Taints:
    """All pools, and the rules that evict pods."""

    def __init__(self) -> None:
        self.pools: dict[PoolId, Pool] = {}
        self.rules = Rules()

    def put(self, slice_: ResourceSlice) -> bool:
        """Add or update a slice. Returns whether taints in its pool changed."""
        return self.pools.setdefault(pool_of(slice_), Pool()).put(slice_)

    def drop(self, slice_: ResourceSlice) -> bool:
        """Remove a slice. Returns whether taints in its pool changed."""
        pool = self.pools.get(pool_of(slice_))
        if pool is None:
            return False
        changed = pool.drop(slice_.name)
        if not pool:
            del self.pools[pool_of(slice_)]
        return changed

    def eviction_of(self, claim: ResourceClaim, only: DeviceTaintRule | None = None) -> Eviction | None:
        """When a claim's users have to be evicted; None for never. ``only``: this rule instead of the present ones."""
        return eviction((device, found) for device in devices_of(claim) for found in self._of(device, only))

    def _of(self, device: AllocatedDevice, only: DeviceTaintRule | None) -> Iterator[Tainting]:
        pool = self.pools.get((device.driver, device.pool))
        if pool is not None:
            yield from map(Tainting, pool.tainted.get(device.device, ()))
        for rule in self.rules.of(device) if only is None else (only,) if selects(only, device) else ():
            taint = rule.spec.taint
            yield Tainting(DeviceTaint(taint.key, taint.value, NO_EXECUTE, taint.time_added), (rule.name, rule.uid))

    def tainting(self, claim: ResourceClaim) -> Iterator[DeviceTaintRule | ResourceSlice]:
        """The rules and slices that taint a claim's devices."""
        for device in devices_of(claim):
            yield from self.rules.of(device)
            pool = self.pools.get((device.driver, device.pool))
            if pool is not None:
                yield from pool.tainting(device.device)

    def published(self, rule: DeviceTaintRule) -> int:
        """The number of published devices that a rule selects."""
        return sum(matches(rule, *place, one.name) for place, pool in self.pools.items() for one in pool.devices())


def allocated(rule: DeviceTaintRule, claim: ResourceClaim) -> int:
    """The number of a claim's devices that a rule selects."""
    return sum(selects(rule, one) for one in devices_of(claim))


def selects(rule: DeviceTaintRule, device: AllocatedDevice) -> bool:
    """Whether a rule selects an allocated device."""
    return matches(rule, device.driver, device.pool, device.device)


def devices_of(claim: ResourceClaim) -> tuple[AllocatedDevice, ...]:
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None else ()


def pool_of(slice_: ResourceSlice) -> PoolId:
    return slice_.spec.driver, slice_.spec.pool.name


def names_of(rule: DeviceTaintRule) -> Names | None:
    """What a rule's selector names; None for a rule that selects nothing."""
    selector = rule.spec.device_selector
    return None if selector is None else (selector.driver, selector.pool, selector.device)


def is_selected(claim: ResourceClaim, selectors: Collection[Names]) -> bool:
    """Whether one of these selects a device of a claim."""
    return any(names in selectors for device in devices_of(claim) for names in _selecting(device))


def _selecting(device: AllocatedDevice) -> Iterable[Names]:
    """What a selector of a device may name."""
    return product((None, device.driver), (None, device.pool), (None, device.device))


def _tainted(devices: Iterable[Device]) -> _Taints:
    found: _Taints = {}
    for device in devices:
        taints = tuple(taint for taint in device.taints if taint.effect == NO_EXECUTE)
        if taints:
            found[device.name] = taints
    return found
