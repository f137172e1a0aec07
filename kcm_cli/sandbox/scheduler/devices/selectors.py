"""Evaluates CEL selectors of devices.

upstream: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go
"""

from collections import defaultdict

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.kubernetes import QuantityValue, version
from kcm_cli.machinery.remembered import remembered
from kcm_cli.sandbox.scheduler.devices.views import Attribute, Device

Domains = defaultdict[str, dict[str, cel.Value]]
"""Attributes or capacities by domain; a domain of which there are none is empty, not missing."""


@remembered(1024, longest=16384)
def compiled(expression: str) -> cel.Program:
    """The compiled expression. Raises CelSyntaxError."""
    return cel.Program(expression)


def matches(expression: str, variables: dict[str, cel.Value]) -> bool:
    """Whether a device matches an expression. Raises CelError."""
    result = compiled(expression).evaluate(variables)
    if not isinstance(result, bool):
        raise cel.CelError(f"CEL result of type {type(result).__name__} could not be converted to bool")
    return result


def variables_of(driver: str, device: Device) -> dict[str, cel.Value]:
    """The variables of expressions about a device. Raises CelError."""
    attributes: Domains = defaultdict(dict)
    capacity: Domains = defaultdict(dict)
    for name, attribute in device.attributes.items():
        _file(attributes, driver, name, _value(name, attribute))
    for name, one in device.capacity.items():
        _file(capacity, driver, name, QuantityValue.parse(one.value))
    return {
        "device": {
            "driver": driver,
            "allowMultipleAllocations": device.allow_multiple_allocations,
            "attributes": attributes,
            "capacity": capacity,
        }
    }


def _file(domains: Domains, driver: str, name: str, value: cel.Value) -> None:
    """Store a value by domain and name. Without a domain it is the driver's."""
    domain, slash, own = name.partition("/")
    domain, own = (domain, own) if slash else (driver, name)
    domains[domain][own] = value


def _value(name: str, attribute: Attribute) -> cel.Value:
    for value in (attribute.integer, attribute.boolean, attribute.string):
        if value is not None:
            return value
    if attribute.version is None:
        raise cel.CelError(f"attribute {name}: unsupported attribute value")
    return version(attribute.version)
