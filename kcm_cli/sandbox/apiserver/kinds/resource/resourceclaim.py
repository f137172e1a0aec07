"""ResourceClaim.

upstream: pkg/apis/resource/v1/defaults.go, pkg/apis/resource/validation,
pkg/registry/resource/resourceclaim/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime
from uuid import UUID

from kcm_cli.machinery.addresses import parse_cidr
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.kinds.resource import devices
from kcm_cli.sandbox.apiserver.kinds.resource.common import at_most_items, claim_spec, tolerations
from kcm_cli.sandbox.apiserver.kinds.resource.device_access import of_claim
from kcm_cli.sandbox.apiserver.kinds.resource.device_claims import (
    LIST_MAX,
    named_requests,
    validate_configuration,
    validate_fixed_spec,
    validate_reference,
    validate_references,
    validate_spec,
)
from kcm_cli.sandbox.apiserver.kinds.resource.devices import HARDWARE_MAX, INTERFACE_MAX, validate_pool, validate_raw
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout
from kcm_cli.sandbox.apiserver.trees import places, put
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, go_print, metadata, rules, scheduling
from kcm_cli.sandbox.apiserver.validation.volume_sources import CSI_DRIVER

DeviceId = tuple[str, str, str, str]
"""Driver, pool, device and share."""


def interface_address(value: str, path: str) -> Errors:
    """Check an address with a prefix length, in canonical form."""
    parsed = parse_cidr(value)
    if parsed is None:
        yield errors.invalid(path, value, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")
        return
    canonical = f"{parsed[0]}/{parsed[1].prefixlen}"
    if value != canonical:
        yield errors.invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def _check(doc: Tree, old: Tree | None) -> Errors:
    return validate_spec(doc.get("spec") or {}, "spec") if old is None else ()


def _check_status(new: Tree, old: Tree) -> Errors:
    status, known = new.get("status") or {}, old.get("status") or {}
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    users, before = status.get("reservedFor") or [], known.get("reservedFor") or []
    yield from _CONSUMERS(users, "status.reservedFor")
    allocation, allocated = status.get("allocation"), known.get("allocation")
    yield from _reported(status.get("devices") or [], _allocated(status))
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
    else:
        yield from _allocation(allocation, (new.get("spec") or {}).get("devices") or {}, "status.allocation")


_CONSUMERS = at_most_items(
    256, rules.fields(rules.required("resource"), rules.required("name"), rules.required("uid")), key="uid"
)


def _reported(items: list[Tree], allocated: set[DeviceId]) -> Errors:
    for index, item in enumerate(items):
        yield from validate_status(item, allocated, f"status.devices[{index}]")
    known: set[DeviceId] = set()
    for index, one in enumerate(map(identity, items)):
        if one in known:
            yield errors.duplicate(f"status.devices[{index}]", shown_identity(one))
        known.add(one)


def _allocation(allocation: Tree, claim: Tree, path: str) -> Errors:
    known = named_requests(claim.get("requests") or [])

    def request(name: str, place: str) -> Errors:
        return validate_reference(name, known, place)

    def references(item: Tree, place: str) -> Errors:
        return validate_references(item, known, place)

    result = rules.fields(rules.always("request", request), *_DEVICE[:3], devices.validate_bindings, _DEVICE[3])
    source = rules.one_of("source", "FromClaim", "FromClass")
    config = rules.fields(source, references, validate_configuration)
    given = rules.fields(
        rules.optional("results", at_most_items(LIST_MAX, result)),
        rules.optional("config", at_most_items(2 * LIST_MAX, config)),
    )
    yield from rules.fields(
        rules.optional("devices", given), rules.optional("nodeSelector", scheduling.validate_node_selector)
    )(allocation, path)


def validate_status(device: Tree, allocated: set[DeviceId], path: str) -> Errors:
    """Check the status of a device. ``allocated``: the devices of the claim."""
    yield from _NAMED(device, path)
    if identity(device) not in allocated:
        yield errors.invalid(path, shown_identity(identity(device)), _ALLOCATED)
    yield from _STATUS(device, path)


def _share(share: str, path: str) -> Errors:
    """Check the ID of a share of a device."""
    try:
        UUID(share)
    except ValueError:
        why = f"invalid UUID length: {len(share)}" if len(share) not in (32, 36, 38, 45) else "invalid UUID format"
        yield errors.invalid(path, share, f"error validating uid: {why}")
        return
    if len(share) != 36 or share != share.lower():
        form = "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
        yield errors.invalid(path, share, f"uid must be in RFC 4122 normalized form, {form}")


def _data(device: Tree, path: str) -> Errors:
    return validate_raw(device["data"], f"{path}.data", _DATA_MAX) if "data" in device else ()


_DATA_MAX = 10 * 1024
_DEVICE = (
    rules.required("driver", CSI_DRIVER),
    rules.required("pool", validate_pool),
    rules.always("device", rules.LABEL),
    rules.optional("shareID", _share),
)
_NAMED = rules.fields(*_DEVICE)
_STATUS = rules.fields(
    rules.optional("conditions", rules.max_items(8), conditions.validate_conditions),
    _data,
    rules.optional(
        "networkData",
        rules.fields(
            rules.optional("interfaceName", rules.max_bytes(INTERFACE_MAX)),
            rules.optional("hardwareAddress", rules.max_bytes(HARDWARE_MAX)),
            rules.optional("ips", at_most_items(16, interface_address, key="")),
        ),
    ),
)

_ALLOCATED = "must be an allocated device in the claim"


def identity(device: Tree) -> DeviceId:
    """The identity of a device in a status."""
    driver, pool, name, share = (device.get(field) or "" for field in ("driver", "pool", "device", "shareID"))
    return driver, pool, name, share


def shown_identity(device: DeviceId) -> Tree:
    """The identity of a device as errors print it."""
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device, strict=True))


def _defaults(doc: Tree) -> None:
    claim_spec(doc.setdefault("spec", {}))
    for result, _ in places(doc.setdefault("status", {}), "allocation.devices.results[]"):
        tolerations(result)


def _claim_status(new: Tree, old: Tree) -> None:
    status = new.setdefault("status", {})
    deallocated = _allocated(old.get("status") or {}) - _allocated(status)
    devices = [device for device in status.get("devices") or () if identity(device) not in deallocated]
    put(status, "devices", devices)


def _allocated(status: Tree) -> set[DeviceId]:
    return {identity(result) for result, _ in places(status, "allocation.devices.results[]")}


def _state(doc: Tree, now: datetime) -> str:
    status, deleted = doc.get("status") or {}, bool(doc["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return ",".join(states)


KIND = Kind(
    "resource.k8s.io",
    "resourceclaims",
    defaults=_defaults,
    strategy=Strategy(
        new_status={},
        status_keeps_metadata=True,
        on_status=_claim_status,
        returns_object_on_delete=True,
        check=_check,
        check_change=lambda new, old: validate_fixed_spec("resource.ResourceClaimSpec", new, old),
        update_steps=("name", "metadata", "rules", "change"),
        check_status=_check_status,
    ),
    check_access=of_claim,
    table=layout(
        NAME, Column("State", "A summary of the current state (allocated, pending, reserved, etc.).", _state), AGE
    ),
)
