"""Devices: what slices say of them, and what drivers report of those that are in use.

Source: pkg/apis/resource/validation/validation.go#validateDevice, #validateDeviceStatus.
"""

import re
from uuid import UUID

from kcm_cli.machinery import codec, names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, conditions, errors, go_print, labels
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

EFFECTS = ("NoExecute", "NoSchedule", "None")
_ATTRIBUTES_MAX, _TEXT_MAX, _TAINTS_MAX, _ID_MAX = 32, 64, 16, 32
_CONDITIONS_MAX, _DATA_MAX, _IPS_MAX = 8, 10 * 1024, 16
_INTERFACE_MAX, _HARDWARE_MAX, _BINDINGS_MAX = 256, 128, 4
_ONE_VALUE = "exactly one value must be specified"
_ALLOCATED = "must be an allocated device in the claim"
_SHOWN_KEY_MAX = 63 + 1 + 32
_semver = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
).fullmatch

DeviceId = tuple[str, str, str, str]
"""Driver, pool, device and share."""


def validate_pool(name: str, path: str) -> list[FieldError]:
    """The name of a pool of devices."""
    if not name:
        return [errors.required(path)]
    found = [errors.too_long(path, names.SUBDOMAIN_MAX)] if len(name.encode()) > names.SUBDOMAIN_MAX else []
    for part in name.split("/"):
        found += errors.invalid_each(path, part, names.dns1123_subdomain(part))
    return found


def validate_device(device: Tree, path: str, *, selects_nodes: bool) -> list[FieldError]:
    """A device in a slice. selects_nodes: whether devices say on which nodes they are."""
    name, attributes, capacity = device.get("name", ""), device.get("attributes") or {}, device.get("capacity") or {}
    found = errors.invalid_each(f"{path}.name", name, names.dns1123_label(name))
    if (count := len(attributes) + len(capacity)) > _ATTRIBUTES_MAX:
        detail = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES_MAX}"
        found.append(errors.invalid(path, count, detail))
    for key, attribute in sorted(attributes.items()):
        place = f"{path}.attributes"
        found += qualified(key, place) + _attribute(attribute, f"{place}[{_shown_key(key)}]")
    for key, amount in sorted(capacity.items()):
        place = f"{path}.capacity"
        found += qualified(key, place)
        if amount.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            where = f"{place}[{_shown_key(key)}].requestPolicy"
            found.append(errors.forbidden(where, "allowMultipleAllocations must be true"))
    taints = device.get("taints") or []
    if len(taints) > _TAINTS_MAX:
        found.append(errors.too_many(f"{path}.taints", len(taints), _TAINTS_MAX))
    else:
        for index, taint in enumerate(taints):
            found += _taint(taint, f"{path}.taints[{index}]")
    found += _nodes(device, path, selects_nodes=selects_nodes)
    return found + validate_bindings(device, path)


def _shown_key(key: str) -> str:
    if len(key) <= _SHOWN_KEY_MAX:
        return key
    rest = _SHOWN_KEY_MAX - 3
    return f"{key[: (rest + 1) // 2]}...{key[len(key) - rest // 2 :]}"


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


def _attribute(attribute: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if (text := attribute.get("string")) is not None:
        found += _short(text, f"{path}.string")
    if (version := attribute.get("version")) is not None:
        if not _semver(version):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            found.append(errors.invalid(f"{path}.version", version, detail))
        found += _short(version, f"{path}.version")
    given = [field for field in attribute if attribute[field] is not None]
    if not given:
        found.append(errors.invalid(path, "", _ONE_VALUE))
    elif len(given) > 1:
        found.append(errors.invalid(path, go_print.internal("resource.DeviceAttribute", attribute), _ONE_VALUE))
    return found


def _short(text: str, path: str) -> list[FieldError]:
    return [errors.too_long(path, _TEXT_MAX)] if len(text.encode()) > _TEXT_MAX else []


def _taint(taint: Tree, path: str) -> list[FieldError]:
    value, effect = taint.get("value", ""), taint.get("effect", "")
    found = labels.validate_key(taint.get("key", ""), f"{path}.key")
    if value:
        found += errors.invalid_each(f"{path}.value", value, labels.value_messages(value))
    return found + errors.one_of(f"{path}.effect", effect, EFFECTS)


def _nodes(device: Tree, path: str, *, selects_nodes: bool) -> list[FieldError]:
    given = [field for field in ("nodeName", "nodeSelector", "allNodes") if device.get(field) is not None]
    if given and not selects_nodes:
        detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true"
        return [errors.invalid(path, None, f"{detail} in the ResourceSlice spec")]
    return []


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


def identity(device: Tree) -> DeviceId:
    """What tells a device in use from others."""
    driver, pool, name, share = (device.get(field) or "" for field in ("driver", "pool", "device", "shareID"))
    return driver, pool, name, share


def shown_identity(device: DeviceId) -> Tree:
    """The same as error texts print it."""
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device, strict=True))


def validate_status(device: Tree, allocated: set[DeviceId], path: str) -> list[FieldError]:
    """What a driver reports of a device. ``allocated``: the devices that the claim has."""
    found = csi_driver_name(device.get("driver", ""), f"{path}.driver")
    found += validate_pool(device.get("pool", ""), f"{path}.pool")
    name = device.get("device", "")
    found += errors.invalid_each(f"{path}.device", name, names.dns1123_label(name))
    found += validate_share(device, path)
    if identity(device) not in allocated:
        found.append(errors.invalid(path, shown_identity(identity(device)), _ALLOCATED))
    items = device.get("conditions") or []
    if len(items) > _CONDITIONS_MAX:
        found.append(errors.too_many(f"{path}.conditions", len(items), _CONDITIONS_MAX))
    found += conditions.validate_conditions(items, f"{path}.conditions")
    if "data" in device:
        found += validate_raw(device["data"], f"{path}.data", _DATA_MAX)
    return found + _network(device.get("networkData") or {}, f"{path}.networkData")


def validate_share(device: Tree, path: str) -> list[FieldError]:
    """The id of a share of a device, if it has one."""
    share, place = device.get("shareID"), f"{path}.shareID"
    if share is None:
        return []
    try:
        UUID(share)
    except ValueError:
        why = f"invalid UUID length: {len(share)}" if len(share) not in (32, 36, 38, 45) else "invalid UUID format"
        return [errors.invalid(place, share, f"error validating uid: {why}")]
    if len(share) == 36 and share == share.lower():
        return []
    form = "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
    return [errors.invalid(place, share, f"uid must be in RFC 4122 normalized form, {form}")]


def validate_raw(value: object, path: str, most: int) -> list[FieldError]:
    """An object of which nothing else is known."""
    if value is None:
        return [errors.required(path)]
    if len(codec.encode(value)) > most:
        return [errors.too_long(path, most)]
    return [] if isinstance(value, dict) else [errors.invalid(path, "<value omitted>", "must be a valid JSON object")]


def _network(data: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for field, most in (("interfaceName", _INTERFACE_MAX), ("hardwareAddress", _HARDWARE_MAX)):
        if len(data.get(field, "").encode()) > most:
            found.append(errors.too_long(f"{path}.{field}", most))
    ips = data.get("ips") or []
    if len(ips) > _IPS_MAX:
        return [*found, errors.too_many(f"{path}.ips", len(ips), _IPS_MAX)]
    for index, ip in enumerate(ips):
        found += addresses.interface_address(ip, f"{path}.ips[{index}]")
    return found + [errors.duplicate(f"{path}.ips[{i}]", ip) for i, ip in enumerate(ips) if ip in ips[:i]]
