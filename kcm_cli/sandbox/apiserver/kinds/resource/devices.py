"""Devices in ResourceSlices, and the status of allocated devices.

upstream: pkg/apis/resource/validation/validation.go#validateDevice, #validateDeviceStatus
"""

from kcm_cli.machinery import codec, names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules
from kcm_cli.sandbox.apiserver.validation.volume_sources import CSI_DRIVER

EFFECTS = ("NoExecute", "NoSchedule", "None")
ATTRIBUTES_MAX, TEXT_MAX, TAINTS_MAX, _ID_MAX = 32, 64, 16, 32
INTERFACE_MAX, HARDWARE_MAX, _BINDINGS_MAX = 256, 128, 4


def validate_pool(name: str, path: str) -> Errors:
    """Check the name of a pool of devices."""
    yield from _POOL_LENGTH(name, path)
    for part in name.split("/"):
        yield from rules.SUBDOMAIN(part, path)


def qualified(name: str, path: str) -> Errors:
    """Check an identifier, with or without a domain before it."""
    domain, slash, rest = name.partition("/")
    if not slash:
        return _IDENTIFIER(name, path)
    if "/" in rest:
        return []  # upstream: validateQualifiedName accepts several slashes
    return [
        *(CSI_DRIVER(domain, path) if domain else [errors.invalid(path, "", "the domain must not be empty")]),
        *(_IDENTIFIER(rest, path) if rest else [errors.invalid(path, "", "the name must not be empty")]),
    ]


_POOL_LENGTH = rules.max_bytes(names.SUBDOMAIN_MAX)
_IDENTIFIER = rules.every(rules.max_bytes(_ID_MAX), rules.form(names.c_identifier))


def validate_bindings(device: Tree, path: str) -> Errors:
    """Check binding conditions and binding failure conditions."""
    fields = ("bindingConditions", "bindingFailureConditions")
    values: list[list[str]] = [device.get(field) or [] for field in fields]
    for field, items in zip(fields, values, strict=True):
        if len(items) > _BINDINGS_MAX:
            yield errors.too_many(f"{path}.{field}", len(items), _BINDINGS_MAX)
            continue
        for index, item in enumerate(items):
            yield from labels.validate_key(item, f"{path}.{field}[{index}]")
    for field, items, others in zip(fields, values, (set[str](), set(values[0])), strict=True):
        seen: set[str] = set()
        for index, item in enumerate(items):
            place = f"{path}.{field}[{index}]"
            if item in seen:
                yield errors.duplicate(place, item)
            seen.add(item)
            if item in others:
                yield errors.invalid(place, item, "bindingFailureConditions must not overlap with bindingConditions")
    for mine, other in ((0, 1), (1, 0)):
        if not values[mine] and values[other]:
            yield errors.invalid(f"{path}.{fields[mine]}", None, f"{fields[mine]} are required to use {fields[other]}")


def validate_raw(value: object, path: str, most: int) -> Errors:
    """Check opaque data: a JSON object of limited size."""
    if value is None:
        return [errors.required(path)]
    if len(codec.encode(value)) > most:
        return [errors.too_long(path, most)]
    return [] if isinstance(value, dict) else [errors.invalid(path, "<value omitted>", "must be a valid JSON object")]
