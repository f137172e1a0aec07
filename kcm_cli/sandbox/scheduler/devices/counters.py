"""Counters that the devices of a pool share, such as overlapping partitions.

upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
"""

from collections.abc import Iterator

from kcm_cli.machinery import quantity
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.sandbox.scheduler.devices.pools import Candidate, Pool
from kcm_cli.sandbox.scheduler.devices.usage import Usage
from kcm_cli.sandbox.scheduler.devices.views import Device

_Place = tuple[str, str]
"""Counter set and counter."""
_Left = dict[_Place, Quantity]


class Counters:
    """The remaining counters of pools, in one search."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._left: dict[Pool, _Left] = {}

    def take(self, candidate: Candidate) -> bool:
        """Consume a device's counters. Returns False if they do not suffice."""
        left = self._of(candidate.pool)
        uses = _summed(candidate.device)
        if any(left[place] < amount for place, amount in uses.items()):
            return False
        for place, amount in uses.items():
            left[place] -= amount
        return True

    def give_back(self, candidate: Candidate) -> None:
        left = self._of(candidate.pool)
        for place, amount in _summed(candidate.device).items():
            left[place] += amount

    def _of(self, pool: Pool) -> _Left:
        left = self._left.get(pool)
        if left is None:
            left = self._left[pool] = {
                (name, counter): quantity.parse(one.value)
                for name, found in pool.counters.items()
                for counter, one in found.counters.items()
            }
            for device in self._allocated(pool):
                for place, amount in _summed(device).items():
                    left[place] -= amount
        return left

    def _allocated(self, pool: Pool) -> Iterator[Device]:
        for one in (*pool.slices, *pool.others):
            for device in one.spec.devices:
                if self._usage.is_allocated((*pool.id, device.name)):
                    yield device


def _summed(device: Device) -> _Left:
    found: _Left = {}
    for use in device.consumes_counters:
        for name, one in use.counters.items():
            place = use.counter_set, name
            found[place] = found.get(place, Quantity()) + quantity.parse(one.value)
    return found
