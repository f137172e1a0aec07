"""ResourceSlice.

Source: pkg/apis/resource/validation,
pkg/registry/resource/resourceslice/strategy.go, pkg/printers/internalversion/printers.go.
"""

import re
from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.resource import devices
from kcm_cli.sandbox.apiserver.kinds.resource.devices import (
    ATTRIBUTES_MAX,
    EFFECTS,
    TAINTS_MAX,
    TEXT_MAX,
    qualified,
    validate_bindings,
)
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, quantities, scheduling
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

_DEVICES_MAX, _TAINTED_MAX = 128, 64
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = f"exactly one of {', '.join(f'`{field}`' for field in _PLACES)} is required"


def validate_slice(doc: Tree) -> Errors:
    return [*metadata.validate_meta(doc["metadata"], False, metadata.subdomain), *_spec(doc.get("spec") or {}, None)]


def validate_slice_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from _spec(new.get("spec") or {}, old.get("spec") or {})


def _spec(spec: Tree, known: Tree | None) -> Errors:
    pool = spec.get("pool") or {}
    yield from csi_driver_name(spec.get("driver", ""), "spec.driver")
    yield from devices.validate_pool(pool.get("name", ""), "spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        yield errors.invalid("spec.pool.resourceSliceCount", count, quantities.NOT_POSITIVE)
    if generation < 0:
        yield errors.invalid("spec.pool.generation", generation, "must be greater than or equal to zero")
    if known is not None:
        before = (known.get("pool") or {}).get("name", "")
        yield from errors.fixed("spec.pool.name", pool.get("name", ""), before)
        yield from errors.fixed("spec.driver", spec.get("driver", ""), known.get("driver", ""))
        yield from errors.fixed("spec.nodeName", spec.get("nodeName"), known.get("nodeName"))
    yield from _place(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield errors.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    yield from _devices(spec.get("devices") or [], selects_nodes=bool(spec.get("perDeviceNodeSelection")))


def _place(spec: Tree) -> Errors:
    used: list[str] = []
    name, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if name == "":
        yield errors.invalid("spec.nodeName", name, "must be either unset or set to a non-empty string")
    elif name is not None:
        used.append("`nodeName`")
        yield from errors.invalid_each("spec.nodeName", name, names.dns1123_subdomain(name))
    if selector is not None:
        used.append("`nodeSelector`")
        yield from scheduling.validate_node_selector(selector, "spec.nodeSelector")
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            used.append(f"`{field}`")
        elif spec.get(field) is False:
            yield errors.invalid(f"spec.{field}", False, "must be either unset or set to true")
    if not used:
        yield errors.required("spec", _ONE_PLACE)
    elif len(used) > 1:
        yield errors.invalid("spec", f"{{{', '.join(used)}}}", f"{_ONE_PLACE}, but multiple fields are set")


def _devices(items: list[Tree], *, selects_nodes: bool) -> Errors:
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in items)
    most = _TAINTED_MAX if advanced else _DEVICES_MAX
    if len(items) > most:
        yield errors.too_many("spec.devices", len(items), most)
        return
    seen: set[str] = set()
    for index, device in enumerate(items):
        name, path = device.get("name", ""), f"spec.devices[{index}]"
        yield from validate_device(device, path, selects_nodes=selects_nodes)
        if name in seen:
            yield errors.duplicate(path, name)
        seen.add(name)


_ONE_VALUE = "exactly one value must be specified"
_SHOWN_KEY_MAX = 63 + 1 + 32
_semver = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
).fullmatch


def validate_device(device: Tree, path: str, *, selects_nodes: bool) -> Errors:
    """A device in a slice. selects_nodes: whether devices say on which nodes they are."""
    name, attributes, capacity = device.get("name", ""), device.get("attributes") or {}, device.get("capacity") or {}
    yield from errors.invalid_each(f"{path}.name", name, names.dns1123_label(name))
    if (count := len(attributes) + len(capacity)) > ATTRIBUTES_MAX:
        detail = f"the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}"
        yield errors.invalid(path, count, detail)
    for key, attribute in sorted(attributes.items()):
        place = f"{path}.attributes"
        yield from qualified(key, place)
        yield from _attribute(attribute, f"{place}[{_shown_key(key)}]")
    for key, amount in sorted(capacity.items()):
        place = f"{path}.capacity"
        yield from qualified(key, place)
        if amount.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            where = f"{place}[{_shown_key(key)}].requestPolicy"
            yield errors.forbidden(where, "allowMultipleAllocations must be true")
    taints = device.get("taints") or []
    if len(taints) > TAINTS_MAX:
        yield errors.too_many(f"{path}.taints", len(taints), TAINTS_MAX)
    else:
        for index, taint in enumerate(taints):
            yield from _taint(taint, f"{path}.taints[{index}]")
    yield from _nodes(device, path, selects_nodes=selects_nodes)
    yield from validate_bindings(device, path)


def _shown_key(key: str) -> str:
    if len(key) <= _SHOWN_KEY_MAX:
        return key
    rest = _SHOWN_KEY_MAX - 3
    return f"{key[: (rest + 1) // 2]}...{key[len(key) - rest // 2 :]}"


def _attribute(attribute: Tree, path: str) -> Errors:
    if (text := attribute.get("string")) is not None:
        yield from _short(text, f"{path}.string")
    if (version := attribute.get("version")) is not None:
        if not _semver(version):
            yield errors.invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0")
        yield from _short(version, f"{path}.version")
    given = [field for field in attribute if attribute[field] is not None]
    if not given:
        yield errors.invalid(path, "", _ONE_VALUE)
    elif len(given) > 1:
        yield errors.invalid(path, go_print.internal("resource.DeviceAttribute", attribute), _ONE_VALUE)


def _short(text: str, path: str) -> Errors:
    return [errors.too_long(path, TEXT_MAX)] if len(text.encode()) > TEXT_MAX else []


def _taint(taint: Tree, path: str) -> Errors:
    value, effect = taint.get("value", ""), taint.get("effect", "")
    yield from labels.validate_key(taint.get("key", ""), f"{path}.key")
    if value:
        yield from errors.invalid_each(f"{path}.value", value, labels.value_messages(value))
    yield from errors.one_of(f"{path}.effect", effect, EFFECTS)


def _nodes(device: Tree, path: str, *, selects_nodes: bool) -> Errors:
    given = [field for field in ("nodeName", "nodeSelector", "allNodes") if device.get(field) is not None]
    if given and not selects_nodes:
        detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true"
        return [errors.invalid(path, None, f"{detail} in the ResourceSlice spec")]
    return []


_GATED_DEVICE_FIELDS = ("nodeAllocatableResourceMappings",)  # gate DRANodeAllocatableResources
_LIST_ATTRIBUTES = ("bools", "ints", "strings", "versions")  # gate DRAListTypeAttributes


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


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [name_of(doc), spec.get("nodeName") or "", spec.get("driver", ""), pool, created(doc, now)]


KIND = Kind(
    "resource.k8s.io",
    "resourceslices",
    strategy=Strategy(
        namespaced=False,
        on_create=_new_slice,
        on_update=_slice_update,
        stamp=_stamp_taints,
        warn=_warn_driver,
        returns_object_on_delete=True,
        check_create=validate_slice,
        check_update=validate_slice_update,
    ),
    table=Layout(
        (
            NAME,
            Column("Node", "ResourceSliceSpec.nodeName"),
            Column("Driver", "ResourceSliceSpec.driver"),
            Column("Pool", "ResourcePool.name"),
            AGE,
        ),
        _cells,
    ),
    selectable=Selectable(
        {"spec.nodeName": "spec.nodeName", "spec.driver": "spec.driver"},
        refusal="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}",
        namespace=False,
    ),
)
