"""ResourceClaims, templates for them, and DeviceClasses.

upstream: pkg/apis/resource/validation/validation.go
"""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.kinds.resource import devices
from kcm_cli.sandbox.apiserver.kinds.resource.common import at_most_items, validate_selector
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, quantities, rules
from kcm_cli.sandbox.apiserver.validation.volume_sources import CSI_DRIVER

LIST_MAX = 32
_TEXT_MAX = 10 * 1024

_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

Requests = Mapping[str, frozenset[str]]
"""The names of requests, each with those of its subrequests."""


def validate_fixed_spec(type_: str, new: Tree, old: Tree) -> Errors:
    spec = new.get("spec") or {}
    if spec == (old.get("spec") or {}):
        return []
    return [errors.invalid("spec", go_print.internal(type_, spec), errors.IMMUTABLE)]


def validate_spec(spec: Tree, path: str) -> Errors:
    claimed, path = spec.get("devices") or {}, f"{path}.devices"
    known = named_requests(claimed.get("requests") or [])

    def references(item: Tree, place: str) -> Errors:
        return validate_references(item, known, place)

    yield from rules.fields(
        rules.optional("requests", at_most_items(LIST_MAX, _request, key="name")),
        rules.optional("constraints", at_most_items(LIST_MAX, references, _attributes)),
        rules.optional("config", at_most_items(LIST_MAX, references, validate_configuration)),
    )(claimed, path)


def named_requests(requests: list[Tree]) -> Requests:
    return {
        item.get("name", ""): frozenset(sub.get("name", "") for sub in item.get("firstAvailable") or ())
        for item in requests
    }


def _value(item: Tree, path: str) -> Errors:
    operator, value = item.get("operator", ""), item.get("value", "")
    if operator == "Exists" and value:
        yield errors.invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from errors.invalid_each(f"{path}.value", value, labels.value_messages(value))
    else:
        yield from errors.one_of(f"{path}.operator", operator, ("Equal", "Exists"))


def _mode(request: Tree, path: str) -> Errors:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All":
        if count:
            yield errors.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode != "ExactCount":
        yield errors.not_supported(f"{path}.allocationMode", mode, ["All", "ExactCount"])
    elif count <= 0:
        yield errors.invalid(f"{path}.count", count, quantities.NOT_POSITIVE)


_WANTED = rules.fields(
    rules.required("deviceClassName", rules.SUBDOMAIN),
    rules.optional("selectors", at_most_items(LIST_MAX, validate_selector)),
    _mode,
    rules.each(
        "tolerations",
        rules.fields(
            rules.nonempty("key", labels.validate_key),
            _value,
            rules.nonempty("effect", rules.enum(*devices.EFFECTS)),
        ),
    ),
)
_AVAILABLE = at_most_items(8, rules.fields(rules.always("name", rules.LABEL), _WANTED), key="name")


def _request(request: Tree, path: str) -> Errors:
    exactly, available = request.get("exactly"), request.get("firstAvailable")
    yield from rules.LABEL(request.get("name", ""), f"{path}.name")
    if exactly is not None and available:
        yield errors.invalid(path, None, f"{_ONE_KIND}, but multiple fields are set")
    elif exactly is not None:
        yield from _WANTED(exactly, f"{path}.exactly")
    elif available:
        yield from _AVAILABLE(available, f"{path}.firstAvailable")
    else:
        yield errors.required(path, _ONE_KIND)


def validate_references(item: Tree, known: Requests, path: str) -> Errors:
    """Check references to requests or subrequests."""
    references = item.get("requests") or []
    check = at_most_items(LIST_MAX, lambda name, place: validate_reference(name, known, place), key="")
    return check(references, f"{path}.requests")


def validate_reference(name: str, known: Requests, path: str) -> Errors:
    parts = name.split("/")
    for part in parts if len(parts) < 3 else ():
        yield from rules.LABEL(part, path)
    if len(parts) > 2 or parts[0] not in known or parts[1:] and parts[1] not in known[parts[0]]:
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


def _raw(value: object, path: str) -> Errors:
    return devices.validate_raw(value, path, _TEXT_MAX)


_OPAQUE = rules.fields(rules.required("driver", CSI_DRIVER), rules.always("parameters", _raw, default=None))
validate_configuration = rules.fields(rules.present("opaque", _OPAQUE))
