"""The devices that claims hold, written or assumed.

upstream: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go
"""

from collections import Counter
from collections.abc import Iterable

from kcm_cli.machinery import quantity
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.sandbox.scheduler.devices.views import DeviceId, Result


class Usage:
    """Devices by the claims that hold them. Admin access does not take a device."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Result, ...]] = {}
        self._taken: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self.capacity: dict[DeviceId, dict[str, Quantity]] = {}

    def hold(self, claim: str, results: Iterable[Result]) -> None:
        """Record the devices of a claim (its uid)."""
        self.release(claim)
        self._held[claim] = tuple(results)
        for result in self._held[claim]:
            self._count(result, 1)

    def release(self, claim: str) -> None:
        for result in self._held.pop(claim, ()):
            self._count(result, -1)

    def is_taken(self, device: DeviceId) -> bool:
        """Whether a device cannot be allocated any more."""
        return self._taken[device] > 0

    def is_allocated(self, device: DeviceId) -> bool:
        """Whether a device, or a share of it, is allocated."""
        return self._taken[device] > 0 or self._shares[device] > 0

    def _count(self, result: Result, sign: int) -> None:
        if result.admin_access:
            return
        if result.share_id is None:
            self._taken[result.id] += sign
            if not self._taken[result.id]:
                del self._taken[result.id]
            return
        self._shares[result.id] += sign
        used = self.capacity.setdefault(result.id, {})
        for name, text in (result.consumed_capacity or {}).items():
            used[name] = used.get(name, Quantity()) + quantity.parse(text) * sign
        if not self._shares[result.id]:
            del self.capacity[result.id], self._shares[result.id]
