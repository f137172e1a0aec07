"""Constraints about attributes that the devices of a claim have to share, or must not share.

upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/constraint.go
"""

from kcm_cli.sandbox.scheduler.devices.pools import Candidate
from kcm_cli.sandbox.scheduler.devices.views import Attribute, Constraint


class Agreement:
    """One constraint, with the values of the devices chosen so far."""

    def __init__(self, constraint: Constraint) -> None:
        self._requests = frozenset(constraint.requests)
        self._name = constraint.match_attribute or constraint.distinct_attribute or ""
        self._same = constraint.match_attribute is not None
        self._values: list[Attribute] = []

    def concerns(self, request: str, alternative: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests

    def add(self, candidate: Candidate) -> bool:
        """Add a device. Returns False if it violates the constraint."""
        value = attribute_of(candidate, self._name)
        if value is None:
            return False
        if self._values and (value != self._values[0] if self._same else value in self._values):
            return False
        self._values.append(value)
        return True

    def remove_last(self) -> None:
        self._values.pop()


def attribute_of(candidate: Candidate, name: str) -> Attribute | None:
    """An attribute by its full name. Devices may omit the domain if it is their driver's name."""
    attributes = candidate.device.attributes
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, own = name.partition("/")
    return attributes.get(own) if slash and domain == candidate.id[0] else None
