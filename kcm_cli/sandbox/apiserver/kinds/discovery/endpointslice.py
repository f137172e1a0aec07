"""EndpointSlice.

upstream: pkg/apis/discovery/v1/defaults.go, pkg/apis/discovery/validation,
pkg/registry/discovery/endpointslice/strategy.go, pkg/printers/internalversion/printers.go
"""

from collections.abc import Sequence
from datetime import datetime

from kcm_cli.api.well_known import HOSTNAME, ZONE
from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, UNSET, Column, layout, more, of_field
from kcm_cli.sandbox.apiserver.trees import each_at, places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, labels, rules
from kcm_cli.sandbox.apiserver.validation.addresses import ip_warnings
from kcm_cli.sandbox.apiserver.validation.ports import endpoint_protocols

_ENDPOINTS_MAX, _ADDRESSES_MAX, _HINTS_MAX = 1000, 100, 8


def _check(doc: Tree, old: Tree | None) -> Errors:
    kind, endpoints = doc.get("addressType", ""), doc.get("endpoints") or []
    yield from _SLICE(doc, "")
    if old is not None and (old.get("endpoints") or []) == endpoints:
        return
    if len(endpoints) > _ENDPOINTS_MAX:
        yield errors.too_many("endpoints", len(endpoints), _ENDPOINTS_MAX)
        return
    for index, endpoint in enumerate(endpoints):
        path = f"endpoints[{index}]"
        yield from _addresses(endpoint.get("addresses") or (), kind, f"{path}.addresses")
        yield from _ENDPOINT(endpoint, path)


def _addresses(values: Sequence[str], kind: str, path: str) -> Errors:
    if not values:
        yield errors.required(path, "must contain at least 1 address")
    elif len(values) > _ADDRESSES_MAX:
        yield errors.too_many(path, len(values), _ADDRESSES_MAX)
    for index, address in enumerate(values):
        yield from _address(address, kind, path, index)


def _no_zone(topology: Tree, path: str) -> Errors:
    if ZONE in topology:
        yield errors.internal(f"{path}[{ZONE}]", "reserved key was not removed in conversion")


def _address(value: str, kind: str, path: str, index: int) -> Errors:
    place = f"{path}[{index}]"
    if kind == "FQDN":
        return _domain(value, place)
    if kind == "IPv4":
        found = [*addresses.legacy_ip(value, place)]
    elif kind == "IPv6":
        found = [*addresses.strict_ip(value, place)]
    else:
        return []
    if found:
        return found
    if addresses.is_ipv6(value) != (kind == "IPv6"):
        found.append(errors.invalid(path, value, f"must be an {kind} address"))
    return [*found, *addresses.endpoint_ip(value, place)]


def _domain(name: str, path: str) -> Errors:
    if not name:
        return [errors.required(path)]
    name = name.removesuffix(".")
    if messages := names.dns1123_subdomain(name):
        return [errors.invalid(path, name, ",".join(messages))]
    if "." not in name:
        return [errors.invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in name.split("."):
        if messages := names.dns1123_label(label):
            return [errors.invalid(path, label, ",".join(messages))]
    return []


def _hints(hints: Tree, path: str) -> Errors:
    for field, names_ in (("forZones", _ZONES), ("forNodes", _NODES)):
        values = hints.get(field) or []
        if len(values) > _HINTS_MAX:
            yield errors.too_many(f"{path}.{field}", len(values), _HINTS_MAX)
            return
        yield from names_(values, f"{path}.{field}")


_ZONES = rules.items(key="name", then=rules.fields(rules.always("name", rules.form(labels.value_messages))))
_NODES = rules.items(key="name", then=rules.fields(rules.always("name", rules.SUBDOMAIN)))
_PORTS = rules.items(rules.fields(rules.nonempty("name", rules.LABEL)), key="name", then=endpoint_protocols)
_SLICE = rules.fields_of(
    "discovery.v1.EndpointSlice",
    rules.one_of("addressType"),
    rules.optional("ports", rules.unless(rules.max_items(20000), _PORTS)),
)
_ENDPOINT = rules.fields(
    rules.optional("nodeName", rules.SUBDOMAIN),
    rules.optional("deprecatedTopology", rules.max_items(16), labels.validate_labels, _no_zone),
    rules.optional("hostname", rules.LABEL),
    rules.optional("hints", _hints),
)


def _defaults(doc: Tree) -> None:
    for port in doc.get("ports") or ():
        fill.absent(port, name="", protocol="TCP")


_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


def of_slice(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about an EndpointSlice that is not a controller's."""
    found: list[str] = []
    if old is None and new.get("addressType") == "FQDN":
        found.append("spec.addressType: FQDN endpoints are deprecated")
    if (new["metadata"].get("labels") or {}).get(_MANAGED_BY) in _CONTROLLERS:
        return found
    return found + each_at(ip_warnings, new, "endpoints[].addresses[]")


def _slice_update(new: Tree, old: Tree) -> None:
    fields = ("addressType", "endpoints", "ports")
    changed = any((new.get(field) or None) != (old.get(field) or None) for field in fields)
    labels = new["metadata"].get("labels") or {}
    if changed or labels != (old["metadata"].get("labels") or {}):
        parts.bump_generation(new, old)
    if (new.get("endpoints") or []) != (old.get("endpoints") or []):
        _drop_topology(new, old)


def _drop_topology(new: Tree, old: Tree | None) -> None:
    """Drop ``deprecatedTopology``, which v1 cannot write. A host name in the old object's becomes ``nodeName``."""
    before = [item.get("deprecatedTopology") or {} for item in (old or {}).get("endpoints") or ()]
    known = {topology.get(HOSTNAME) for topology in before}
    for endpoint in new.get("endpoints") or ():
        host = (endpoint.pop("deprecatedTopology", None) or {}).get(HOSTNAME)
        if host is not None and host in known:
            fill.absent(endpoint, nodeName=host)


def _ports_cell(doc: Tree, now: datetime) -> str:
    ports = [str(p["port"]) if p.get("port") is not None else p.get("name", "*") for p in doc.get("ports") or ()]
    return more(ports) or UNSET


def _endpoints_cell(doc: Tree, now: datetime) -> str:
    return more([ip for ip, _ in places(doc, "endpoints[].addresses[]")]) or UNSET


KIND = Kind(
    "discovery.k8s.io",
    "endpointslices",
    defaults=_defaults,
    strategy=Strategy(
        generation=True,
        on_create=lambda doc: _drop_topology(doc, None),
        on_update=_slice_update,
        check=_check,
        check_change=lambda new, old: errors.fixed(
            "addressType", new.get("addressType", ""), old.get("addressType", "")
        ),
        update_steps=("name", "rules", "change"),
        warn=of_slice,
    ),
    table=layout(
        NAME,
        Column("AddressType", *of_field("EndpointSlice", "addressType")),
        Column("Ports", "EndpointSlice.ports", _ports_cell),
        Column("Endpoints", "EndpointSlice.endpoints", _endpoints_cell),
        AGE,
    ),
)
