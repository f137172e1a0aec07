"""Devices: what slices say of them, and what drivers report of those that are in use.

Source: pkg/apis/resource/validation/validation.go#validateDevice, #validateDeviceStatus.
"""

from kcm_cli.machinery import codec, names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

EFFECTS = ("NoExecute", "NoSchedule", "None")
ATTRIBUTES_MAX, TEXT_MAX, TAINTS_MAX, _ID_MAX = 32, 64, 16, 32
INTERFACE_MAX, HARDWARE_MAX, _BINDINGS_MAX = 256, 128, 4


def validate_pool(name: str, path: str) -> Errors:
    """The name of a pool of devices."""
    if not name:
        yield errors.required(path)
        return
    if len(name.encode()) > names.SUBDOMAIN_MAX:
        yield errors.too_long(path, names.SUBDOMAIN_MAX)
    for part in name.split("/"):
        yield from errors.invalid_each(path, part, names.dns1123_subdomain(part))


def qualified(name: str, path: str) -> Errors:
    """An identifier, with a domain in front of it or without."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from _identifier(name, path)
        return
    if len(parts) > 2:
        return
    domain, rest = parts
    if domain:
        yield from csi_driver_name(domain, path)
    else:
        yield errors.invalid(path, "", "the domain must not be empty")
    if rest:
        yield from _identifier(rest, path)
    else:
        yield errors.invalid(path, "", "the name must not be empty")


def _identifier(name: str, path: str) -> Errors:
    if len(name.encode()) > _ID_MAX:
        yield errors.too_long(path, _ID_MAX)
    yield from errors.invalid_each(path, name, names.c_identifier(name))


def validate_bindings(device: Tree, path: str) -> Errors:
    """Conditions that a binding waits for, and those that end it."""
    fields = ("bindingConditions", "bindingFailureConditions")
    values: list[list[str]] = [device.get(field) or [] for field in fields]
    for field, items in zip(fields, values, strict=True):
        if len(items) > _BINDINGS_MAX:
            yield errors.too_many(f"{path}.{field}", len(items), _BINDINGS_MAX)
            continue
        for index, item in enumerate(items):
            yield from labels.validate_key(item, f"{path}.{field}[{index}]")
    for field, items, others in zip(fields, values, ([], values[0]), strict=True):
        for index, item in enumerate(items):
            place = f"{path}.{field}[{index}]"
            if item in items[:index]:
                yield errors.duplicate(place, item)
            if item in others:
                yield errors.invalid(place, item, "bindingFailureConditions must not overlap with bindingConditions")
    for mine, other in ((0, 1), (1, 0)):
        if not values[mine] and values[other]:
            yield errors.invalid(f"{path}.{fields[mine]}", None, f"{fields[mine]} are required to use {fields[other]}")


def validate_raw(value: object, path: str, most: int) -> Errors:
    """An object of which nothing else is known."""
    if value is None:
        return [errors.required(path)]
    if len(codec.encode(value)) > most:
        return [errors.too_long(path, most)]
    return [] if isinstance(value, dict) else [errors.invalid(path, "<value omitted>", "must be a valid JSON object")]
