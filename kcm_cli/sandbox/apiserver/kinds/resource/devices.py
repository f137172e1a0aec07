"""Devices: what slices say of them, and what drivers report of those that are in use.

Source: pkg/apis/resource/validation/validation.go#validateDevice, #validateDeviceStatus.
"""

from kcm_cli.machinery import codec, names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

EFFECTS = ("NoExecute", "NoSchedule", "None")
ATTRIBUTES_MAX, TEXT_MAX, TAINTS_MAX, _ID_MAX = 32, 64, 16, 32
INTERFACE_MAX, HARDWARE_MAX, _BINDINGS_MAX = 256, 128, 4


def validate_pool(name: str, path: str) -> list[FieldError]:
    """The name of a pool of devices."""
    if not name:
        return [errors.required(path)]
    found = [errors.too_long(path, names.SUBDOMAIN_MAX)] if len(name.encode()) > names.SUBDOMAIN_MAX else []
    for part in name.split("/"):
        found += errors.invalid_each(path, part, names.dns1123_subdomain(part))
    return found


def qualified(name: str, path: str) -> list[FieldError]:
    """An identifier, with a domain in front of it or without."""
    parts = name.split("/")
    if len(parts) == 1:
        return _identifier(name, path)
    if len(parts) > 2:
        return []  # upstream: validateQualifiedName looks at no more than one slash
    domain, rest = parts
    found = csi_driver_name(domain, path) if domain else [errors.invalid(path, "", "the domain must not be empty")]
    return found + (_identifier(rest, path) if rest else [errors.invalid(path, "", "the name must not be empty")])


def _identifier(name: str, path: str) -> list[FieldError]:
    found = [errors.too_long(path, _ID_MAX)] if len(name.encode()) > _ID_MAX else []
    return found + errors.invalid_each(path, name, names.c_identifier(name))


def validate_bindings(device: Tree, path: str) -> list[FieldError]:
    """Conditions that a binding waits for, and those that end it."""
    fields = ("bindingConditions", "bindingFailureConditions")
    found: list[FieldError] = []
    values: list[list[str]] = [device.get(field) or [] for field in fields]
    for field, items in zip(fields, values, strict=True):
        if len(items) > _BINDINGS_MAX:
            found.append(errors.too_many(f"{path}.{field}", len(items), _BINDINGS_MAX))
            continue
        for index, item in enumerate(items):
            found += labels.validate_key(item, f"{path}.{field}[{index}]")
    for field, items, others in zip(fields, values, ([], values[0]), strict=True):
        for index, item in enumerate(items):
            place = f"{path}.{field}[{index}]"
            if item in items[:index]:
                found.append(errors.duplicate(place, item))
            if item in others:
                detail = "bindingFailureConditions must not overlap with bindingConditions"
                found.append(errors.invalid(place, item, detail))
    for mine, other in ((0, 1), (1, 0)):
        if not values[mine] and values[other]:
            detail = f"{fields[mine]} are required to use {fields[other]}"
            found.append(errors.invalid(f"{path}.{fields[mine]}", None, detail))
    return found


def validate_raw(value: object, path: str, most: int) -> list[FieldError]:
    """An object of which nothing else is known."""
    if value is None:
        return [errors.required(path)]
    if len(codec.encode(value)) > most:
        return [errors.too_long(path, most)]
    return [] if isinstance(value, dict) else [errors.invalid(path, "<value omitted>", "must be a valid JSON object")]
