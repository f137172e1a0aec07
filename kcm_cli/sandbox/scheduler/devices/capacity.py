"""The consumable capacity of shared devices.

upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go
"""

from collections.abc import Mapping

from kcm_cli.machinery import quantity
from kcm_cli.machinery.quantity import Format, Quantity
from kcm_cli.sandbox.scheduler.devices.views import Capacity, Device, RequestPolicy, ValidRange, Wanted

Amounts = Mapping[str, Quantity]
NOTHING: Amounts = {}


def consumed(wanted: Wanted, device: Device) -> dict[str, Quantity]:
    """The amount of each capacity that the request takes: the requested one, rounded up by the device's policy, or the
    default."""
    asked = wanted.capacity.requests if wanted.capacity is not None else {}
    return {name: _taken(asked.get(name), capacity) for name, capacity in device.capacity.items()}


def fits(wanted: Wanted, device: Device, used: Amounts) -> bool:
    """Whether a device has the requested capacity, beside what is used."""
    if wanted.capacity is not None and not wanted.capacity.requests.keys() <= device.capacity.keys():
        return False
    for name, amount in consumed(wanted, device).items():
        capacity = device.capacity[name]
        if _violates(amount, capacity.request_policy):
            return False
        if amount + used.get(name, Quantity()) > quantity.parse(capacity.value):
            return False
    return True


def _taken(asked: str | None, capacity: Capacity) -> Quantity:
    policy = capacity.request_policy
    if asked is None:
        return quantity.parse(policy.default if policy is not None and policy.default is not None else capacity.value)
    amount = quantity.parse(asked)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _in_range(amount, policy.valid_range, quantity.parse(policy.valid_range.min))
    return next((value for value in map(quantity.parse, policy.valid_values) if amount <= value), amount)


def _in_range(amount: Quantity, valid: ValidRange, least: Quantity) -> Quantity:
    """The amount, raised to the minimum and to a whole number of steps above it."""
    if amount < least:
        return least
    if valid.step is None:
        return amount
    step, base = quantity.parse(valid.step).value(), least.value()
    return quantity.make(base + -((base - amount.value()) // step) * step, 0, Format.BINARY_SI)


def _violates(amount: Quantity, policy: RequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == quantity.parse(policy.default)):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > quantity.parse(valid.max):
            return True
        least = quantity.parse(valid.min or "0").value()
        return valid.step is not None and (amount.value() - least) % quantity.parse(valid.step).value() != 0
    return bool(policy.valid_values) and amount not in map(quantity.parse, policy.valid_values)
