"""Strategies of the kinds of resource.k8s.io.

Source: pkg/registry/resource/*/strategy.go, pkg/apis/resource/v1/defaults.go#SetDefaults_DeviceTaint.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import device_claims, device_slices

_GATED_DEVICE_FIELDS = ("nodeAllocatableResourceMappings",)  # gate DRANodeAllocatableResources
_LIST_ATTRIBUTES = ("bools", "ints", "strings", "versions")  # gate DRAListTypeAttributes


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


def _new_slice(doc: Tree) -> None:
    parts.first_generation(doc)
    _drop_gated(doc)


def _slice_update(new: Tree, old: Tree) -> None:
    parts.bump_if_spec_changed(new, old)
    _drop_gated(new)


def _drop_gated(doc: Tree) -> None:
    for device in (doc.get("spec") or {}).get("devices") or ():
        for field in _GATED_DEVICE_FIELDS:
            device.pop(field, None)
        for attribute in (device.get("attributes") or {}).values():
            for field in _LIST_ATTRIBUTES:
                attribute.pop(field, None)


def _stamp_taints(new: Tree, old: Tree | None, context: Context) -> None:
    now = context.now or new["metadata"].get("creationTimestamp")
    for device in (new.get("spec") or {}).get("devices") or ():
        for taint in device.get("taints") or ():
            if taint.get("timeAdded") is None and now:
                taint["timeAdded"] = now


def _warn_driver(new: Tree, old: Tree | None) -> list[str]:
    driver = (new.get("spec") or {}).get("driver", "")
    if driver == driver.lower():
        return []
    rule = "driver names should be lowercase"
    return [f'spec.driver: {rule}; "{driver}" contains uppercase characters']


DEVICE_CLASS = Strategy(
    namespaced=False,
    on_create=parts.first_generation,
    on_update=parts.bump_if_spec_changed,
    returns_object_on_delete=True,
    check_create=device_claims.validate_class,
    check_update=device_claims.validate_class_update,
)
RESOURCE_CLAIM = Strategy(
    on_create=parts.new_with_status({}, generation=False),
    on_update=parts.keep_status,
    on_status=_claim_status,
    returns_object_on_delete=True,
    check_create=device_claims.validate_claim,
    check_update=device_claims.validate_claim_update,
    check_status=device_claims.validate_claim_status,
)
RESOURCE_CLAIM_TEMPLATE = Strategy(
    returns_object_on_delete=True,
    check_create=device_claims.validate_template,
    check_update=device_claims.validate_template_update,
)
RESOURCE_SLICE = Strategy(
    namespaced=False,
    on_create=_new_slice,
    on_update=_slice_update,
    stamp=_stamp_taints,
    warn=_warn_driver,
    returns_object_on_delete=True,
    check_create=device_slices.validate_slice,
    check_update=device_slices.validate_slice_update,
)
