"""Claims of devices, their templates, and classes of devices.

Source: pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Callable, Mapping

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.resource import devices
from kcm_cli.sandbox.apiserver.kinds.resource.common import validate_selector
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, quantities
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

LIST_MAX, _AVAILABLE_MAX, CONSUMERS_MAX = 32, 8, 256
_TEXT_MAX = 10 * 1024
_OPERATORS = ("Equal", "Exists")
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

Check = Callable[[Tree, str], Errors]
Requests = Mapping[str, frozenset[str]]
"""Names of requests, and of the alternatives of each."""


def validate_items(
    items: list[Tree], most: int, check: Check, path: str, key: Callable[[Tree], str] | None = None
) -> Errors:
    """A list that is not too long, its items, and that no two have the same key."""
    if len(items) > most:
        yield errors.too_many(path, len(items), most)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")
    seen: set[str] = set()
    for index, item in enumerate(items) if key is not None else ():
        name = key(item) if key is not None else ""
        if name in seen:
            yield errors.duplicate(f"{path}[{index}]", name)
        seen.add(name)


def _name_of(item: Tree) -> str:
    name: str = item.get("name", "")
    return name


def validate_fixed_spec(type_: str, new: Tree, old: Tree) -> Errors:
    spec = new.get("spec") or {}
    if spec == (old.get("spec") or {}):
        return []
    return [errors.invalid("spec", go_print.internal(type_, spec), errors.IMMUTABLE)]


def validate_spec(spec: Tree, path: str) -> Errors:
    claimed, path = spec.get("devices") or {}, f"{path}.devices"
    requests = claimed.get("requests") or []
    known = named_requests(requests)

    def constraint(item: Tree, place: str) -> Errors:
        return [*validate_references(item, known, place), *_attributes(item, place)]

    def configuration(item: Tree, place: str) -> Errors:
        return [*validate_references(item, known, place), *validate_configuration(item, place)]

    found = [*validate_items(requests, LIST_MAX, _request, f"{path}.requests", _name_of)]
    found += validate_items(claimed.get("constraints") or [], LIST_MAX, constraint, f"{path}.constraints")
    return [*found, *validate_items(claimed.get("config") or [], LIST_MAX, configuration, f"{path}.config")]


def named_requests(requests: list[Tree]) -> Requests:
    return {
        item.get("name", ""): frozenset(sub.get("name", "") for sub in item.get("firstAvailable") or ())
        for item in requests
    }


def _request(request: Tree, path: str) -> Errors:
    name, exactly, available = request.get("name", ""), request.get("exactly"), request.get("firstAvailable")
    yield from errors.invalid_each(f"{path}.name", name, names.dns1123_label(name))
    if exactly is not None and available:
        yield errors.invalid(path, None, f"{_ONE_KIND}, but multiple fields are set")
        return
    if exactly is not None:
        yield from _wanted(exactly, f"{path}.exactly")
        return
    if not available:
        yield errors.required(path, _ONE_KIND)
        return
    yield from validate_items(available, _AVAILABLE_MAX, _alternative, f"{path}.firstAvailable", _name_of)


def _alternative(request: Tree, path: str) -> Errors:
    name = request.get("name", "")
    return [*errors.invalid_each(f"{path}.name", name, names.dns1123_label(name)), *_wanted(request, path)]


def _wanted(request: Tree, path: str) -> Errors:
    name, mode, count = request.get("deviceClassName", ""), request.get("allocationMode", ""), request.get("count", 0)
    if not name:
        yield errors.required(f"{path}.deviceClassName")
    if name:
        yield from errors.invalid_each(f"{path}.deviceClassName", name, names.dns1123_subdomain(name))
    yield from validate_items(request.get("selectors") or [], LIST_MAX, validate_selector, f"{path}.selectors")
    if mode == "All":
        if count:
            yield errors.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode != "ExactCount":
        yield errors.not_supported(f"{path}.allocationMode", mode, ["All", "ExactCount"])
    elif count <= 0:
        yield errors.invalid(f"{path}.count", count, quantities.NOT_POSITIVE)
    for index, item in enumerate(request.get("tolerations") or ()):
        yield from _toleration(item, f"{path}.tolerations[{index}]")


def _toleration(item: Tree, path: str) -> Errors:
    key, operator, value, effect = (item.get(field, "") for field in ("key", "operator", "value", "effect"))
    if key:
        yield from labels.validate_key(key, f"{path}.key")
    if operator == "Exists" and value:
        yield errors.invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from errors.invalid_each(f"{path}.value", value, labels.value_messages(value))
    else:
        yield from errors.one_of(f"{path}.operator", operator, _OPERATORS)
    if effect and effect not in devices.EFFECTS:
        yield errors.not_supported(f"{path}.effect", effect, devices.EFFECTS)


def validate_references(item: Tree, known: Requests, path: str) -> Errors:
    """Requests by name, or one alternative of one."""
    references, place = item.get("requests") or [], f"{path}.requests"
    if len(references) > LIST_MAX:
        yield errors.too_many(place, len(references), LIST_MAX)
        return
    for index, name in enumerate(references):
        yield from validate_reference(name, known, f"{place}[{index}]")
    repeated = [index for index, name in enumerate(references) if name in references[:index]]
    yield from (errors.duplicate(f"{place}[{index}]", references[index]) for index in repeated)


def validate_reference(name: str, known: Requests, path: str) -> Errors:
    parts = name.split("/")
    if len(parts) > 2:
        yield errors.invalid(path, name, _REFERENCE)
        return
    for part in parts:
        yield from errors.invalid_each(path, part, names.dns1123_label(part))
    if parts[0] not in known or parts[1:] and parts[1] not in known[parts[0]]:
        yield errors.invalid(path, name, _REFERENCE)


def _attributes(constraint: Tree, path: str) -> Errors:
    for field in ("matchAttribute", "distinctAttribute"):
        name = constraint.get(field)
        if name is not None:
            return _fully_qualified(name, f"{path}.{field}")
    return [errors.required(path, _ONE_ATTRIBUTE)]


def _fully_qualified(name: str, path: str) -> Errors:
    yield from devices.qualified(name, path)
    if "/" not in name:
        yield errors.invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def validate_configuration(config: Tree, path: str) -> Errors:
    opaque, path = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        yield errors.required(path)
        return
    yield from csi_driver_name(opaque.get("driver", ""), f"{path}.driver")
    yield from devices.validate_raw(opaque.get("parameters"), f"{path}.parameters", _TEXT_MAX)
