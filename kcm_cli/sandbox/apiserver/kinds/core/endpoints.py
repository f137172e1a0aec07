"""Endpoints.

Source: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/endpoints/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, more, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, metadata, ports
from kcm_cli.sandbox.apiserver.validation.addresses import ip_warnings
from kcm_cli.sandbox.apiserver.validation.ports import endpoint_protocols


def validate_endpoints(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    for index, subset in enumerate(doc.get("subsets") or ()):
        yield from _subset(subset, f"subsets[{index}]")


def validate_endpoints_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    if (new.get("subsets") or []) == (old.get("subsets") or []):
        yield from metadata.validate_meta(new["metadata"], True, metadata.subdomain)
        return
    yield from validate_endpoints(new)


def _subset(subset: Tree, path: str) -> Errors:
    fields = ("addresses", "notReadyAddresses")
    if not any(subset.get(field) for field in fields):
        yield errors.required(path, "must specify `addresses` or `notReadyAddresses`")
    for field in fields:
        for index, address in enumerate(subset.get(field) or ()):
            yield from _old_address(address, f"{path}.{field}[{index}]")
    items = subset.get("ports") or ()
    for index, port in enumerate(items):
        place, name = f"{path}.ports[{index}]", port.get("name", "")
        if name:
            yield from errors.invalid_each(f"{place}.name", name, names.dns1123_label(name))
        elif len(items) > 1:
            yield errors.required(f"{place}.name")
        yield from ports.number(port.get("port", 0), f"{place}.port")
        yield from endpoint_protocols({**port, "protocol": port.get("protocol") or None}, place)


def _old_address(address: Tree, path: str) -> Errors:
    value, host, node = address.get("ip", ""), address.get("hostname", ""), address.get("nodeName")
    yield from addresses.legacy_ip(value, f"{path}.ip")
    if host:
        yield from errors.invalid_each(f"{path}.hostname", host, names.dns1123_label(host))
    if node is not None:
        yield from errors.invalid_each(f"{path}.nodeName", node, names.dns1123_subdomain(node))
    yield from addresses.endpoint_ip(value, f"{path}.ip")


def _defaults(doc: Tree) -> None:
    for subset in doc.get("subsets") or ():
        for port in subset.get("ports") or ():
            fill.empty(port, (("protocol", "TCP"),))


def of_endpoints(new: Tree, old: Tree | None) -> list[str]:
    """Endpoints that are not the controller's."""
    if (new["metadata"].get("labels") or {}).get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return []
    found: list[str] = []
    for index, subset in enumerate(new.get("subsets") or ()):
        for field in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(field) or ()):
                found += ip_warnings(address.get("ip", ""), f"subsets[{index}].{field}[{number}].ip")
    return found


def _cells(doc: Tree, now: datetime) -> list[object]:
    found: list[str] = []
    for subset in doc.get("subsets") or ():
        ips = [one["ip"] for one in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [_joined(ip, port["port"]) for port in ports for ip in ips] if ports else ips
    text = more(found, 3) if doc.get("subsets") else NONE
    return [name_of(doc), text, created(doc, now)]


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


KIND = Kind(
    "",
    "endpoints",
    defaults=_defaults,
    strategy=Strategy(
        creates_on_update=True,
        check_create=validate_endpoints,
        check_update=validate_endpoints_update,
        warn=of_endpoints,
    ),
    table=Layout((NAME, Column("Endpoints", "Endpoints.subsets"), AGE), _cells),
)
