"""ResourceClaim.

Source: pkg/apis/resource/v1/defaults.go, pkg/apis/resource/validation,
pkg/registry/resource/resourceclaim/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime
from uuid import UUID

from kcm_cli.machinery import names
from kcm_cli.machinery.addresses import parse_cidr
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.apply.resets import SPEC_AND_METADATA
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.resource import devices
from kcm_cli.sandbox.apiserver.kinds.resource.common import claim_spec, tolerations
from kcm_cli.sandbox.apiserver.kinds.resource.device_claims import (
    CONSUMERS_MAX,
    LIST_MAX,
    named_requests,
    validate_configuration,
    validate_fixed_spec,
    validate_items,
    validate_reference,
    validate_references,
    validate_spec,
)
from kcm_cli.sandbox.apiserver.kinds.resource.devices import HARDWARE_MAX, INTERFACE_MAX, validate_pool, validate_raw
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, go_print, metadata, scheduling
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

DeviceId = tuple[str, str, str, str]


def interface_address(value: str, path: str) -> Errors:
    """An address with the length of its network's prefix, in its canonical form."""
    parsed = parse_cidr(value)
    if parsed is None:
        yield errors.invalid(path, value, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")
        return
    canonical = f"{parsed[0]}/{parsed[1].prefixlen}"
    if value != canonical:
        yield errors.invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def validate_claim(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    yield from validate_spec(doc.get("spec") or {}, "spec")


def validate_claim_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta(new["metadata"], True, metadata.subdomain)
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from validate_fixed_spec("resource.ResourceClaimSpec", new, old)


def validate_claim_status(new: Tree, old: Tree) -> Errors:
    status, known = new.get("status") or {}, old.get("status") or {}
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    users, before = status.get("reservedFor") or [], known.get("reservedFor") or []
    yield from validate_items(
        users, CONSUMERS_MAX, _consumer, "status.reservedFor", lambda item: str(item.get("uid", ""))
    )
    allocation, allocated = status.get("allocation"), known.get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    yield from _reported(status.get("devices") or [], {identity(item) for item in results})
    if users and allocation is None:
        yield errors.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif new["metadata"].get("deletionTimestamp") and any(user not in before for user in users):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield errors.forbidden("status.reservedFor", detail)
    if allocation is None:
        return
    if allocated is not None:
        shown = go_print.internal("resource.AllocationResult", allocation)
        yield from errors.fixed("status.allocation", allocation, allocated, shown)
        return
    yield from _allocation(allocation, (new.get("spec") or {}).get("devices") or {}, "status.allocation")


def _reported(items: list[Tree], allocated: set[DeviceId]) -> Errors:
    for index, item in enumerate(items):
        yield from validate_status(item, allocated, f"status.devices[{index}]")
    known = [identity(item) for item in items]
    for index, one in enumerate(known):
        if one in known[:index]:
            yield errors.duplicate(f"status.devices[{index}]", shown_identity(one))


def _consumer(user: Tree, path: str) -> Errors:
    return [errors.required(f"{path}.{field}") for field in ("resource", "name", "uid") if not user.get(field)]


def _allocation(allocation: Tree, claim: Tree, path: str) -> Errors:
    known, given = named_requests(claim.get("requests") or []), allocation.get("devices") or {}

    def result(item: Tree, place: str) -> Errors:
        yield from validate_reference(item.get("request", ""), known, f"{place}.request")
        yield from csi_driver_name(item.get("driver", ""), f"{place}.driver")
        yield from devices.validate_pool(item.get("pool", ""), f"{place}.pool")
        device = item.get("device", "")
        yield from errors.invalid_each(f"{place}.device", device, names.dns1123_label(device))
        yield from devices.validate_bindings(item, place)
        yield from validate_share(item, place)

    def configuration(item: Tree, place: str) -> Errors:
        yield from errors.one_of(f"{place}.source", item.get("source", ""), ("FromClaim", "FromClass"))
        yield from validate_references(item, known, place)
        yield from validate_configuration(item, place)

    found = [*validate_items(given.get("results") or [], LIST_MAX, result, f"{path}.devices.results")]
    found += validate_items(given.get("config") or [], 2 * LIST_MAX, configuration, f"{path}.devices.config")
    selector = allocation.get("nodeSelector")
    if selector is not None:
        found += scheduling.validate_node_selector(selector, f"{path}.nodeSelector")
    return found


_CONDITIONS_MAX, _DATA_MAX, _IPS_MAX = 8, 10 * 1024, 16
_ALLOCATED = "must be an allocated device in the claim"

"""Driver, pool, device and share."""


def identity(device: Tree) -> DeviceId:
    """What tells a device in use from others."""
    driver, pool, name, share = (device.get(field) or "" for field in ("driver", "pool", "device", "shareID"))
    return driver, pool, name, share


def shown_identity(device: DeviceId) -> Tree:
    """The same as error texts print it."""
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device, strict=True))


def validate_status(device: Tree, allocated: set[DeviceId], path: str) -> Errors:
    """What a driver reports of a device. ``allocated``: the devices that the claim has."""
    yield from csi_driver_name(device.get("driver", ""), f"{path}.driver")
    yield from validate_pool(device.get("pool", ""), f"{path}.pool")
    name = device.get("device", "")
    yield from errors.invalid_each(f"{path}.device", name, names.dns1123_label(name))
    yield from validate_share(device, path)
    if identity(device) not in allocated:
        yield errors.invalid(path, shown_identity(identity(device)), _ALLOCATED)
    items = device.get("conditions") or []
    if len(items) > _CONDITIONS_MAX:
        yield errors.too_many(f"{path}.conditions", len(items), _CONDITIONS_MAX)
    yield from conditions.validate_conditions(items, f"{path}.conditions")
    if "data" in device:
        yield from validate_raw(device["data"], f"{path}.data", _DATA_MAX)
    yield from _network(device.get("networkData") or {}, f"{path}.networkData")


def validate_share(device: Tree, path: str) -> Errors:
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


def _network(data: Tree, path: str) -> Errors:
    for field, most in (("interfaceName", INTERFACE_MAX), ("hardwareAddress", HARDWARE_MAX)):
        if len(data.get(field, "").encode()) > most:
            yield errors.too_long(f"{path}.{field}", most)
    ips = data.get("ips") or []
    if len(ips) > _IPS_MAX:
        yield errors.too_many(f"{path}.ips", len(ips), _IPS_MAX)
        return
    for index, ip in enumerate(ips):
        yield from interface_address(ip, f"{path}.ips[{index}]")
    yield from (errors.duplicate(f"{path}.ips[{i}]", ip) for i, ip in enumerate(ips) if ip in ips[:i])


def _defaults(doc: Tree) -> None:
    claim_spec(doc.setdefault("spec", {}))
    allocation = (doc.setdefault("status", {}).get("allocation") or {}).get("devices") or {}
    for result in allocation.get("results") or ():
        tolerations(result)


def _claim_status(new: Tree, old: Tree) -> None:
    parts.strict_status_update(new, old)
    status = new.setdefault("status", {})
    gone = _allocated(old.get("status") or {}) - _allocated(status)
    devices = [device for device in status.get("devices") or () if _device_id(device) not in gone]
    if devices:
        status["devices"] = devices
    else:
        status.pop("devices", None)


def _device_id(device: Tree) -> tuple[object, ...]:
    return tuple(device.get(field) for field in ("driver", "pool", "device", "shareID"))


def _allocated(status: Tree) -> set[tuple[object, ...]]:
    devices = (status.get("allocation") or {}).get("devices") or {}
    return {_device_id(result) for result in devices.get("results") or ()}


def _cells(doc: Tree, now: datetime) -> list[object]:
    status, deleted = doc.get("status") or {}, bool(doc["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return [name_of(doc), ",".join(states), created(doc, now)]


KIND = Kind(
    "resource.k8s.io",
    "resourceclaims",
    defaults=_defaults,
    strategy=Strategy(
        on_create=parts.new_with_status({}, generation=False),
        on_update=parts.keep_status,
        on_status=_claim_status,
        returns_object_on_delete=True,
        check_create=validate_claim,
        check_update=validate_claim_update,
        check_status=validate_claim_status,
    ),
    table=Layout(
        (NAME, Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."), AGE),
        _cells,
    ),
    writable={"status": SPEC_AND_METADATA},
)
