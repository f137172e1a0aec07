"""Constraints about attributes that the devices of a claim have to share, or must not share.

upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/constraint.go
"""

from kcm_cli.sandbox.scheduler.devices.pools import Candidate
from kcm_cli.sandbox.scheduler.devices.views import Attribute, Constraint


class Agreement:
    """One constraint, with the values of the devices chosen so far.

    As upstream's, one about distinct values compares with the last device of each request.
    """

    def __init__(self, constraint: Constraint) -> None:
        self._requests = frozenset(constraint.requests)
        self._name = constraint.match_attribute or constraint.distinct_attribute or ""
        self._same = constraint.match_attribute is not None
        self._values: list[Attribute] = []
        self._last: dict[str, Attribute] = {}

    def concerns(self, request: str, alternative: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests

    def add(self, request: str, candidate: Candidate) -> bool:
        """Add a device for a request. Returns False if it violates the constraint."""
        value = attribute_of(candidate, self._name)
        if value is None:
            return False
        if self._same:
            if self._values and value != self._values[0]:
                return False
            self._values.append(value)
            return True
        if value in self._last.values():
            return False
        self._last[request] = value
        return True

    def remove_last(self, request: str) -> None:
        """Remove the last device, which was added for a request."""
        if self._same:
            self._values.pop()
        else:
            self._last.pop(request, None)


def attribute_of(candidate: Candidate, name: str) -> Attribute | None:
    """An attribute by its full name. Devices may omit the domain if it is their driver's name."""
    attributes = candidate.device.attributes
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, own = name.partition("/")
    return attributes.get(own) if slash and domain == candidate.id[0] else None
