"""EndpointSlices and Endpoints.

Source: pkg/apis/discovery/validation/validation.go, pkg/apis/core/validation/validation.go#ValidateEndpoints.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, labels, metadata, ports

_TYPES = ("FQDN", "IPv4", "IPv6")
_ENDPOINTS_MAX, _ADDRESSES_MAX, _PORTS_MAX, _TOPOLOGY_MAX, _HINTS_MAX = 1000, 100, 20000, 16, 8
_ZONE = "topology.kubernetes.io/zone"


def validate_slice(doc: Tree) -> list[FieldError]:
    return _slice(doc, None)


def validate_slice_update(new: Tree, old: Tree) -> list[FieldError]:
    after, before = new.get("addressType", ""), old.get("addressType", "")
    return _slice(new, old) + errors.fixed("addressType", after, before)


def _slice(doc: Tree, known: Tree | None) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    kind, endpoints = doc.get("addressType", ""), doc.get("endpoints") or []
    found += errors.one_of("addressType", kind, _TYPES)
    found += _slice_ports(doc.get("ports") or [])
    if known is not None and (known.get("endpoints") or []) == endpoints:
        return found
    if len(endpoints) > _ENDPOINTS_MAX:
        return [*found, errors.too_many("endpoints", len(endpoints), _ENDPOINTS_MAX)]
    for index, endpoint in enumerate(endpoints):
        found += _endpoint(endpoint, kind, f"endpoints[{index}]")
    return found


def _slice_ports(items: list[Tree]) -> list[FieldError]:
    if len(items) > _PORTS_MAX:
        return [errors.too_many("ports", len(items), _PORTS_MAX)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(items):
        name, path = port.get("name") or "", f"ports[{index}]"
        if name:
            found += errors.invalid_each(f"{path}.name", name, names.dns1123_label(name))
        if name in seen:
            found.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        found += _protocol(port, path)
    return found


def _protocol(port: Tree, path: str) -> list[FieldError]:
    protocol, application = port.get("protocol"), port.get("appProtocol")
    found: list[FieldError] = []
    if protocol is None:
        found.append(errors.required(f"{path}.protocol"))
    elif protocol not in ports.PROTOCOLS:
        found.append(errors.not_supported(f"{path}.protocol", protocol, ports.PROTOCOLS))
    if application is not None:
        found += labels.validate_key(application, f"{path}.appProtocol")
    return found


def _endpoint(endpoint: Tree, kind: str, path: str) -> list[FieldError]:
    values, place = endpoint.get("addresses") or (), f"{path}.addresses"
    found: list[FieldError] = []
    if not values:
        found.append(errors.required(place, "must contain at least 1 address"))
    elif len(values) > _ADDRESSES_MAX:
        found.append(errors.too_many(place, len(values), _ADDRESSES_MAX))
    for index, value in enumerate(values):
        found += _address(value, kind, place, index)
    node, host, hints = endpoint.get("nodeName"), endpoint.get("hostname"), endpoint.get("hints")
    if node is not None:
        found += errors.invalid_each(f"{path}.nodeName", node, names.dns1123_subdomain(node))
    topology = endpoint.get("deprecatedTopology") or {}
    place = f"{path}.deprecatedTopology"
    if len(topology) > _TOPOLOGY_MAX:
        found.append(errors.too_many(place, len(topology), _TOPOLOGY_MAX))
    found += labels.validate_labels(topology, place)
    if _ZONE in topology:
        found.append(errors.internal(f"{place}[{_ZONE}]", "reserved key was not removed in conversion"))
    if host is not None:
        found += errors.invalid_each(f"{path}.hostname", host, names.dns1123_label(host))
    return found if hints is None else found + _hints(hints, f"{path}.hints")


def _address(value: str, kind: str, path: str, index: int) -> list[FieldError]:
    place = f"{path}[{index}]"
    if kind == "FQDN":
        return _domain(value, place)
    if kind == "IPv4":
        found = addresses.legacy_ip(value, place)
    elif kind == "IPv6":
        found = addresses.strict_ip(value, place)
    else:
        return []
    if found:
        return found
    if addresses.is_ipv6(value) != (kind == "IPv6"):
        found.append(errors.invalid(path, value, f"must be an {kind} address"))
    return found + addresses.endpoint_ip(value, place)


def _domain(name: str, path: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    name = name.removesuffix(".")
    if messages := names.dns1123_subdomain(name):
        return [errors.invalid(path, name, ",".join(messages))]
    if "." not in name:
        detail = "should be a domain with at least two segments separated by dots"
        return [errors.invalid(path, name, detail)]
    for label in name.split("."):
        if messages := names.dns1123_label(label):
            return [errors.invalid(path, label, ",".join(messages))]
    return []


def _hints(hints: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for field in ("forZones", "forNodes"):
        items, place = hints.get(field) or (), f"{path}.{field}"
        if len(items) > _HINTS_MAX:
            return [*found, errors.too_many(place, len(items), _HINTS_MAX)]
        seen: set[str] = set()
        for index, item in enumerate(items):
            name = item.get("name", "")
            if name in seen:
                found.append(errors.duplicate(f"{place}[{index}].name", name))
            seen.add(name)
            rule = labels.value_messages if field == "forZones" else names.dns1123_subdomain
            found += errors.invalid_each(f"{place}[{index}].name", name, rule(name))
    return found


def validate_endpoints(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    for index, subset in enumerate(doc.get("subsets") or ()):
        found += _subset(subset, f"subsets[{index}]")
    return found


def validate_endpoints_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    if (new.get("subsets") or []) == (old.get("subsets") or []):
        return found + metadata.validate_meta(new["metadata"], True, metadata.subdomain)
    return found + validate_endpoints(new)


def _subset(subset: Tree, path: str) -> list[FieldError]:
    fields = ("addresses", "notReadyAddresses")
    found: list[FieldError] = []
    if not any(subset.get(field) for field in fields):
        found.append(errors.required(path, "must specify `addresses` or `notReadyAddresses`"))
    for field in fields:
        for index, address in enumerate(subset.get(field) or ()):
            found += _old_address(address, f"{path}.{field}[{index}]")
    items = subset.get("ports") or ()
    for index, port in enumerate(items):
        place, name = f"{path}.ports[{index}]", port.get("name", "")
        if name:
            found += errors.invalid_each(f"{place}.name", name, names.dns1123_label(name))
        elif len(items) > 1:
            found.append(errors.required(f"{place}.name"))
        found += ports.number(port.get("port", 0), f"{place}.port")
        found += _protocol({**port, "protocol": port.get("protocol") or None}, place)
    return found


def _old_address(address: Tree, path: str) -> list[FieldError]:
    value, host, node = address.get("ip", ""), address.get("hostname", ""), address.get("nodeName")
    found = addresses.legacy_ip(value, f"{path}.ip")
    if host:
        found += errors.invalid_each(f"{path}.hostname", host, names.dns1123_label(host))
    if node is not None:
        found += errors.invalid_each(f"{path}.nodeName", node, names.dns1123_subdomain(node))
    return found + addresses.endpoint_ip(value, f"{path}.ip")
