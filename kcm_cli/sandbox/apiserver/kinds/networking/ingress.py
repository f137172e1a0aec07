"""Ingress.

Source: pkg/apis/networking/validation,
pkg/registry/networking/ingress/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.networking.common import balancer_addresses, validate_reference
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, metadata, ports
from kcm_cli.sandbox.apiserver.validation.addresses import ip_warnings

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")
_CLASS = "kubernetes.io/ingress.class"
_NOT_IP = "must be a DNS name, not an IP address"


def validate_ingress(doc: Tree) -> Errors:
    yield from _ingress(doc)
    annotation = (doc["metadata"].get("annotations") or {}).get(_CLASS)
    name = doc["spec"].get("ingressClassName")
    if annotation is not None and name is not None and annotation != name:
        detail = "must match `ingressClassName` when both are specified"
        yield errors.invalid(f"annotations.{_CLASS}", annotation, detail)


def _ingress(doc: Tree, *, any_secret: bool = False, any_wildcard: bool = False) -> Errors:
    spec = doc["spec"]
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        yield errors.invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"spec.rules[{index}]", any_wildcard)
    for index, item in enumerate(spec.get("tls") or ()):
        yield from _tls(item, f"spec.tls[{index}]", any_secret)
    name = spec.get("ingressClassName")
    if name is not None:
        yield from errors.invalid_each("spec.ingressClassName", name, names.dns1123_subdomain(name))


def validate_ingress_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    spec = old["spec"]
    any_secret = any(_secret_messages(item) for item in spec.get("tls") or ())
    wildcards = [rule for rule in spec.get("rules") or () if "*" in rule.get("host", "")]
    any_wildcard = any(any(_paths(rule, "")) for rule in wildcards)
    yield from _ingress(new, any_secret=any_secret, any_wildcard=any_wildcard)


def _host(host: str, path: str) -> Errors:
    rule = names.wildcard_subdomain if "*" in host else names.dns1123_subdomain
    return errors.invalid_each(path, host, rule(host))


def _secret_messages(item: Tree) -> list[str]:
    name = item.get("secretName", "")
    return names.dns1123_subdomain(name) if name else []


def _tls(item: Tree, path: str, any_secret: bool) -> Errors:
    for index, host in enumerate(item.get("hosts") or ()):
        yield from _host(host, f"{path}.hosts[{index}]")
    if any_secret:
        return
    yield from errors.invalid_each(f"{path}.secretName", item.get("secretName", ""), _secret_messages(item))


def _rule(rule: Tree, path: str, any_wildcard: bool) -> Errors:
    host = rule.get("host", "")
    if host:
        if addresses.parse_ip(host) is not None:
            yield errors.invalid(f"{path}.host", host, _NOT_IP)
        yield from _host(host, f"{path}.host")
    if not (any_wildcard and "*" in host):
        yield from _paths(rule, path)


def _paths(rule: Tree, path: str) -> Errors:
    http = rule.get("http")
    if http is None:
        return
    paths = http.get("paths") or ()
    if not paths:
        yield errors.required(f"{path}.http.paths")
    for index, item in enumerate(paths):
        yield from _path(item, f"{path}.http.paths[{index}]")


def _path(item: Tree, path: str) -> Errors:
    kind, target = item.get("pathType"), item.get("path", "")
    if kind is None:
        yield errors.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield errors.not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    elif not target.startswith("/") and (target or kind != "ImplementationSpecific"):
        yield errors.invalid(f"{path}.path", target, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        details = [f"must not contain '{part}'" for part in _BAD_PARTS if part in target]
        details += [f"cannot end with '{end}'" for end in _BAD_ENDS if target.endswith(end)]
        yield from errors.invalid_each(f"{path}.path", target, details)
    yield from _backend(item.get("backend") or {}, f"{path}.backend")


def _backend(backend: Tree, path: str) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield errors.invalid(path, "", "cannot set both resource and service backends")
        return
    if resource is not None:
        yield from validate_reference(resource, f"{path}.resource")
        return
    if service is None:
        yield errors.invalid(path, "", "resource or service backend is required")
        return
    name = service.get("name", "")
    if not name:
        yield errors.required(f"{path}.service.name")
    if name:
        yield from errors.invalid_each(f"{path}.service.name", name, names.dns1123_label(name))
    yield from _port(service.get("port") or {}, path)


def _port(port: Tree, path: str) -> Errors:
    name, number = port.get("name", ""), port.get("number", 0)
    if name and number:
        return [errors.invalid(path, "", "cannot set both port name & port number")]
    if name:
        return errors.invalid_each(f"{path}.service.port.name", name, names.port_name(name))
    if number:
        return ports.number(number, f"{path}.service.port.number")
    return [errors.required(path, "port name or number is required")]


def validate_ingress_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    known = [item["ip"] for item in _points(old) if item.get("ip")]
    for index, item in enumerate(_points(new)):
        path = f"status.loadBalancer.ingress[{index}]"
        address, host = item.get("ip", ""), item.get("hostname", "")
        if address:
            yield from addresses.legacy_ip(address, f"{path}.ip", known)
        if host:
            yield from errors.invalid_each(f"{path}.hostname", host, names.dns1123_subdomain(host))
            if addresses.parse_ip(host) is not None:
                yield errors.invalid(f"{path}.hostname", host, _NOT_IP)


def _points(doc: Tree) -> list[Tree]:
    return ((doc.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def of_ingress(new: Tree, old: Tree | None) -> list[str]:
    """A new Ingress."""
    used = _CLASS in (new["metadata"].get("annotations") or ())
    if old is not None or not used or new["spec"].get("ingressClassName") is not None:
        return []
    return [f"annotation {quote(_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"]


def of_ingress_status(new: Tree, old: Tree | None) -> list[str]:
    """Addresses in an Ingress's status."""
    points = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    found: list[str] = []
    for index, point in enumerate(points):
        if address := point.get("ip"):
            found += ip_warnings(address, f"status.loadBalancer.ingress[{index}]")
    return found


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    rules = spec.get("rules") or []
    hosts = [rule["host"] for rule in rules[:3] if rule.get("host")]
    text = ",".join(hosts) or "*"
    if hosts and len(rules) > 3:
        text += f" + {len(rules) - 3} more..."
    ports = "80, 443" if spec.get("tls") else "80"
    return [name_of(doc), spec.get("ingressClassName") or NONE, text, balancer_addresses(doc), ports, created(doc, now)]


KIND = Kind(
    "networking.k8s.io",
    "ingresses",
    strategy=Strategy(
        on_create=parts.new_with_status({"loadBalancer": {}}, generation=True),
        on_update=parts.spec_update,
        on_status=parts.status_update,
        check_create=validate_ingress,
        check_update=validate_ingress_update,
        check_status=validate_ingress_status,
        warn=of_ingress,
        warn_status=of_ingress_status,
    ),
    table=Layout(
        (
            NAME,
            Column("Class", "The name of the IngressClass resource that should be used for additional configuration"),
            Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
            Column("Address", "Address is a list containing ingress points for the load-balancer"),
            Column("Ports", "Ports of TLS configurations that open"),
            AGE,
        ),
        _cells,
    ),
)
