"""ResourceSlice.

upstream: pkg/apis/resource/validation,
pkg/registry/resource/resourceslice/strategy.go, pkg/printers/internalversion/printers.go
"""

import re

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.resource import capacities
from kcm_cli.sandbox.apiserver.kinds.resource.devices import (
    ATTRIBUTES_MAX,
    EFFECTS,
    TAINTS_MAX,
    TEXT_MAX,
    qualified,
    validate_bindings,
    validate_pool,
)
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout, of_field
from kcm_cli.sandbox.apiserver.trees import places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, quantities, rules, scheduling
from kcm_cli.sandbox.apiserver.validation.volume_sources import CSI_DRIVER


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec, known = doc.get("spec") or {}, (old or {}).get("spec") or {}
    yield from _SPEC(spec, "spec")
    if old is not None:
        pool, before = ((one.get("pool") or {}).get("name", "") for one in (spec, known))
        yield from errors.fixed("spec.pool.name", pool, before)
        yield from errors.fixed("spec.driver", spec.get("driver", ""), known.get("driver", ""))
        yield from errors.fixed("spec.nodeName", spec.get("nodeName"), known.get("nodeName"))
    yield from _place(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield errors.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    devices = spec.get("devices") or []
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    selects = bool(spec.get("perDeviceNodeSelection"))

    def device(item: Tree, path: str) -> Errors:
        return validate_device(item, path, selects_nodes=selects)

    yield from rules.unless(rules.max_items(64 if advanced else 128), rules.items(device, key="name", at_key=False))(
        devices, "spec.devices"
    )
    yield from capacities.SHARED(spec.get("sharedCounters") or (), "spec.sharedCounters")


_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = f"exactly one of {', '.join(f'`{field}`' for field in _PLACES)} is required"


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
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            shown = go_print.internal("v1.NodeSelector", selector)
            assert isinstance(shown, dict)
            detail = "must have exactly one node selector term"
            yield errors.invalid("spec.nodeSelector.nodeSelectorTerms", shown["NodeSelectorTerms"], detail)
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            used.append(f"`{field}`")
        elif spec.get(field) is False:
            yield errors.invalid(f"spec.{field}", False, "must be either unset or set to true")
    if not used:
        yield errors.required("spec", _ONE_PLACE)
    elif len(used) > 1:
        yield errors.invalid("spec", f"{{{', '.join(used)}}}", f"{_ONE_PLACE}, but multiple fields are set")


_ONE_VALUE = "exactly one value must be specified"
_SHOWN_KEY_MAX = 63 + 1 + 32
_semver = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
).fullmatch


def validate_device(device: Tree, path: str, *, selects_nodes: bool) -> Errors:
    """Check a device in a slice. selects_nodes: whether devices have node selectors (``perDeviceNodeSelection``)."""
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    yield from rules.LABEL(device.get("name", ""), f"{path}.name")
    if (count := len(attributes) + len(capacity)) > ATTRIBUTES_MAX:
        detail = f"the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}"
        yield errors.invalid(path, count, detail)
    for key, attribute in sorted(attributes.items()):
        place = f"{path}.attributes"
        yield from qualified(key, place)
        yield from _ATTRIBUTE(attribute, f"{place}[{_shown_key(key)}]")
    for key, amount in sorted(capacity.items()):
        place = f"{path}.capacity"
        yield from qualified(key, place)
        where, policy = f"{place}[{_shown_key(key)}].requestPolicy", amount.get("requestPolicy")
        if policy is not None and device.get("allowMultipleAllocations"):
            yield from capacities.validate_request_policy(policy, amount.get("value"), where)
        elif policy is not None:
            yield errors.forbidden(where, "allowMultipleAllocations must be true")
    yield from _TAINTS(device, path)
    yield from capacities.CONSUMED(device.get("consumesCounters") or (), f"{path}.consumesCounters")
    yield from _nodes(device, path, selects_nodes=selects_nodes)
    yield from validate_bindings(device, path)


def _one_value(attribute: Tree, path: str) -> Errors:
    given = [field for field in attribute if attribute[field] is not None]
    if not given:
        yield errors.invalid(path, "", _ONE_VALUE)
    elif len(given) > 1:
        yield errors.invalid(path, go_print.internal("resource.DeviceAttribute", attribute), _ONE_VALUE)


_version = rules.must(_semver, "must be a string compatible with semver.org spec 2.0.0")
_SHORT = rules.max_bytes(TEXT_MAX)
_ATTRIBUTE = rules.fields(rules.optional("string", _SHORT), rules.optional("version", _version, _SHORT), _one_value)
_TAINT = rules.fields(
    rules.always("key", labels.validate_key),
    rules.nonempty("value", rules.form(labels.value_messages)),
    rules.one_of("effect", *EFFECTS),
)
_TAINTS = rules.fields(rules.optional("taints", rules.unless(rules.max_items(TAINTS_MAX), rules.items(_TAINT))))
_SPEC = rules.fields(
    rules.required("driver", CSI_DRIVER),
    rules.always(
        "pool",
        rules.fields(
            rules.required("name", validate_pool),
            rules.always("resourceSliceCount", rules.at_least(1, quantities.NOT_POSITIVE), default=0),
            rules.optional("generation", rules.at_least(0, "must be greater than or equal to zero")),
        ),
        default={},
    ),
)


def _shown_key(key: str) -> str:
    if len(key) <= _SHOWN_KEY_MAX:
        return key
    rest = _SHOWN_KEY_MAX - 3
    return f"{key[: (rest + 1) // 2]}...{key[len(key) - rest // 2 :]}"


def _nodes(device: Tree, path: str, *, selects_nodes: bool) -> Errors:
    given = [field for field in ("nodeName", "nodeSelector", "allNodes") if device.get(field) is not None]
    if not selects_nodes:
        if given:
            detail = "can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            yield errors.invalid(path, None, f"`nodeName`, `nodeSelector` and `allNodes` {detail}")
        return
    name = device.get("nodeName")
    if name == "":
        given.remove("nodeName")
        yield errors.invalid(f"{path}.nodeName", name, "must not be empty")
    elif name is not None:
        yield from errors.invalid_each(f"{path}.nodeName", name, names.dns1123_subdomain(name))
    if "nodeSelector" in given:
        yield from scheduling.validate_node_selector(device["nodeSelector"], f"{path}.nodeSelector")
    if device.get("allNodes") is False:
        given.remove("allNodes")
        yield errors.invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    if not given:
        yield errors.required(path, _ONE_NODES)
    elif len(given) > 1:
        yield errors.invalid(path, f"{{{', '.join(f'`{field}`' for field in given)}}}", _ONE_NODES)


_ONE_NODES = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_GATED_DEVICE_FIELDS = ("nodeAllocatableResourceMappings",)  # gate DRANodeAllocatableResources
_LIST_ATTRIBUTES = ("bools", "ints", "strings", "versions")  # gate DRAListTypeAttributes


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
    for taint, _ in places(new, "spec.devices[].taints[]"):
        if taint.get("timeAdded") is None and now:
            taint["timeAdded"] = now


def _warn_driver(new: Tree, old: Tree | None) -> list[str]:
    driver = (new.get("spec") or {}).get("driver", "")
    if driver == driver.lower():
        return []
    rule = "driver names should be lowercase"
    return [f'spec.driver: {rule}; "{driver}" contains uppercase characters']


KIND = Kind(
    "resource.k8s.io",
    "resourceslices",
    strategy=Strategy(
        generation=True,
        on_create=_drop_gated,
        on_update=_slice_update,
        stamp=_stamp_taints,
        warn=_warn_driver,
        returns_object_on_delete=True,
        check=_check,
    ),
    table=layout(
        NAME,
        Column("Node", *of_field("ResourceSlice", "spec.nodeName")),
        Column("Driver", *of_field("ResourceSlice", "spec.driver")),
        Column("Pool", "ResourcePool.name", at("spec.pool.name")),
        AGE,
    ),
    selectable=Selectable(
        {"spec.nodeName": "spec.nodeName", "spec.driver": "spec.driver"},
        refusal="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}",
        namespace=False,
    ),
)
