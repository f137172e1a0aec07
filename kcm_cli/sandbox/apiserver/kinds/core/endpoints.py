"""Endpoints.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/endpoints/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, more
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.trees import each_at, places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, labels, ports, rules
from kcm_cli.sandbox.apiserver.validation.addresses import ip_warnings


def _check(doc: Tree, old: Tree | None) -> Errors:
    subsets = doc.get("subsets") or []
    return () if old is not None and subsets == (old.get("subsets") or []) else _SUBSETS(subsets, "subsets")


def _some_address(subset: Tree, path: str) -> Errors:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield errors.required(path, "must specify `addresses` or `notReadyAddresses`")


def _port_names(ports: list[Tree], path: str) -> Errors:
    for index, port in enumerate(ports):
        if len(ports) > 1 and not port.get("name"):
            yield errors.required(f"{path}[{index}].name")
        yield from _PORT(port, f"{path}[{index}]")


_ADDRESS = rules.fields(
    rules.always("ip", addresses.legacy_ip),
    rules.nonempty("hostname", rules.LABEL),
    rules.optional("nodeName", rules.SUBDOMAIN),
    rules.always("ip", addresses.endpoint_ip),
)
_PORT = rules.fields_of(
    "core.v1.EndpointPort",
    rules.nonempty("name", rules.LABEL),
    rules.always("port", ports.number, default=0),
    rules.one_of("protocol"),
    rules.optional("appProtocol", labels.validate_key),
)
_SUBSETS = rules.items(
    rules.fields(
        _some_address,
        rules.each("addresses", _ADDRESS),
        rules.each("notReadyAddresses", _ADDRESS),
        rules.optional("ports", _port_names),
    )
)


def _defaults(doc: Tree) -> None:
    for port, _ in places(doc, "subsets[].ports[]"):
        fill.empty(port, protocol="TCP")


def of_endpoints(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about Endpoints that are not the controller's."""
    if (new["metadata"].get("labels") or {}).get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return []
    return [
        text
        for subset, path in places(new, "subsets[]")
        for field in ("addresses", "notReadyAddresses")
        for text in each_at(ip_warnings, subset, f"{field}[].ip", path)
    ]


def _addresses(doc: Tree, now: datetime) -> str:
    found: list[str] = []
    for subset in doc.get("subsets") or ():
        ips = [one["ip"] for one in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [host_and_port(ip, port["port"]) for port in ports for ip in ips] if ports else ips
    return more(found) if doc.get("subsets") else NONE


KIND = Kind(
    "",
    "endpoints",
    defaults=_defaults,
    strategy=Strategy(
        creates_on_update=True,
        check=_check,
        update_steps=("metadata", "name", "rules"),
        warn=of_endpoints,
    ),
    warning="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    etcd="services/endpoints",
    table=layout(NAME, Column("Endpoints", "Endpoints.subsets", _addresses), AGE),
)
