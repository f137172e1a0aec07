"""Slices of the devices that nodes offer: where they are; the devices are checked by ``devices``.

Counters are taken as they come.

Source: pkg/apis/resource/validation/validation.go#ValidateResourceSlice.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import devices, errors, metadata, quantities, scheduling
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

_DEVICES_MAX, _TAINTED_MAX = 128, 64
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = f"exactly one of {', '.join(f'`{field}`' for field in _PLACES)} is required"


def validate_slice(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], False, metadata.subdomain) + _spec(doc.get("spec") or {}, None)


def validate_slice_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _spec(new.get("spec") or {}, old.get("spec") or {})


def _spec(spec: Tree, known: Tree | None) -> list[FieldError]:
    pool = spec.get("pool") or {}
    found = csi_driver_name(spec.get("driver", ""), "spec.driver")
    found += devices.validate_pool(pool.get("name", ""), "spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        found.append(errors.invalid("spec.pool.resourceSliceCount", count, quantities.NOT_POSITIVE))
    if generation < 0:
        detail = "must be greater than or equal to zero"
        found.append(errors.invalid("spec.pool.generation", generation, detail))
    if known is not None:
        before = (known.get("pool") or {}).get("name", "")
        found += errors.fixed("spec.pool.name", pool.get("name", ""), before)
        found += errors.fixed("spec.driver", spec.get("driver", ""), known.get("driver", ""))
        found += errors.fixed("spec.nodeName", spec.get("nodeName"), known.get("nodeName"))
    found += _place(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        found.append(errors.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    return found + _devices(spec.get("devices") or [], selects_nodes=bool(spec.get("perDeviceNodeSelection")))


def _place(spec: Tree) -> list[FieldError]:
    found: list[FieldError] = []
    used: list[str] = []
    name, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if name == "":
        detail = "must be either unset or set to a non-empty string"
        found.append(errors.invalid("spec.nodeName", name, detail))
    elif name is not None:
        used.append("`nodeName`")
        found += errors.invalid_each("spec.nodeName", name, names.dns1123_subdomain(name))
    if selector is not None:
        used.append("`nodeSelector`")
        found += scheduling.validate_node_selector(selector, "spec.nodeSelector")
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            used.append(f"`{field}`")
        elif spec.get(field) is False:
            found.append(errors.invalid(f"spec.{field}", False, "must be either unset or set to true"))
    if not used:
        found.append(errors.required("spec", _ONE_PLACE))
    elif len(used) > 1:
        detail = f"{_ONE_PLACE}, but multiple fields are set"
        found.append(errors.invalid("spec", f"{{{', '.join(used)}}}", detail))
    return found


def _devices(items: list[Tree], *, selects_nodes: bool) -> list[FieldError]:
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in items)
    most = _TAINTED_MAX if advanced else _DEVICES_MAX
    if len(items) > most:
        return [errors.too_many("spec.devices", len(items), most)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, device in enumerate(items):
        name, path = device.get("name", ""), f"spec.devices[{index}]"
        found += devices.validate_device(device, path, selects_nodes=selects_nodes)
        if name in seen:
            found.append(errors.duplicate(path, name))
        seen.add(name)
    return found
