"""Ingress.

upstream: pkg/apis/networking/validation,
pkg/registry/networking/ingress/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime
from functools import cache

from kcm_cli.api.well_known import INGRESS_CLASS
from kcm_cli.machinery import names
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.kinds.networking.common import (
    NOT_IP,
    balancer_addresses,
    balancer_warnings,
    host_name,
    points,
    validate_reference,
)
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, metadata, ports, rules


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec, known = doc["spec"], {} if old is None else old["spec"]
    any_secret = any(any(_SECRET(item, "")) for item in known.get("tls") or ())
    wildcards = [rule for rule in known.get("rules") or () if "*" in rule.get("host", "")]
    any_wildcard = any(any(_PATHS(rule, "")) for rule in wildcards)
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield errors.invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    yield from _spec(any_secret, any_wildcard)(spec, "spec")
    annotation = (doc["metadata"].get("annotations") or {}).get(INGRESS_CLASS)
    if (
        old is None
        and None not in (annotation, spec.get("ingressClassName"))
        and annotation != spec["ingressClassName"]
    ):
        detail = "must match `ingressClassName` when both are specified"
        yield errors.invalid(f"annotations.{INGRESS_CLASS}", annotation, detail)


@cache
def _spec(any_secret: bool, any_wildcard: bool) -> rules.Rule:
    def paths(rule: Tree, path: str) -> Errors:
        return () if any_wildcard and "*" in rule.get("host", "") else _PATHS(rule, path)

    return rules.fields(
        rules.optional("defaultBackend", _backend),
        rules.each("rules", rules.fields(rules.nonempty("host", _rule_host), paths)),
        rules.each("tls", rules.fields(rules.each("hosts", _host), *(() if any_secret else (_SECRET,)))),
        rules.optional("ingressClassName", rules.SUBDOMAIN),
    )


def _host(host: str, path: str) -> Errors:
    return _WILDCARD(host, path) if "*" in host else rules.SUBDOMAIN(host, path)


def _rule_host(host: str, path: str) -> Errors:
    if addresses.parse_ip(host) is not None:
        yield errors.invalid(path, host, NOT_IP)
    yield from _host(host, path)


_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")


def _path(item: Tree, path: str) -> Errors:
    kind, target = item["pathType"], item.get("path", "")
    if kind in _PATH_TYPES and not target.startswith("/") and (target or kind != "ImplementationSpecific"):
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
    elif resource is not None:
        yield from validate_reference(resource, f"{path}.resource")
    elif service is None:
        yield errors.invalid(path, "", "resource or service backend is required")
    else:
        yield from _SERVICE(service, f"{path}.service")
        yield from _port(service.get("port") or {}, path)


def _port(port: Tree, path: str) -> Errors:
    if port.get("name") and port.get("number"):
        return [errors.invalid(path, "", "cannot set both port name & port number")]
    if not port.get("name") and not port.get("number"):
        return [errors.required(path, "port name or number is required")]
    return _PORT(port, f"{path}.service.port")


_PATH_TYPES = rules.choices("networking.v1.HTTPIngressPath", "pathType")
_WILDCARD = rules.form(names.wildcard_subdomain)
_SECRET = rules.fields(rules.nonempty("secretName", rules.SUBDOMAIN))
_SERVICE = rules.fields(rules.required("name", rules.LABEL))
_PORT = rules.fields(rules.nonempty("name", rules.form(names.port_name)), rules.nonempty("number", ports.number))
_PATH = rules.unless(
    rules.fields(rules.present("pathType", detail="pathType must be specified")),
    rules.fields_of("networking.v1.HTTPIngressPath", rules.maybe_one_of("pathType"), _path),
)
_PATHS = rules.fields(rules.optional("http", rules.fields(rules.required("paths", rules.items(_PATH)))))


def _check_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    known = [item["ip"] for item in points(old) if item.get("ip")]
    for index, item in enumerate(points(new)):
        path = f"status.loadBalancer.ingress[{index}]"
        if address := item.get("ip"):
            yield from addresses.legacy_ip(address, f"{path}.ip", known)
        if host := item.get("hostname"):
            yield from host_name(host, f"{path}.hostname")


def of_ingress(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a new Ingress."""
    used = INGRESS_CLASS in (new["metadata"].get("annotations") or ())
    if old is not None or not used or new["spec"].get("ingressClassName") is not None:
        return []
    return [f"annotation {quote(INGRESS_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"]


def _hosts(doc: Tree, now: datetime) -> str:
    listed = (doc.get("spec") or {}).get("rules") or []
    hosts = [rule["host"] for rule in listed[:3] if rule.get("host")]
    text = ",".join(hosts) or "*"
    return f"{text} + {len(listed) - 3} more..." if hosts and len(listed) > 3 else text


KIND = Kind(
    "networking.k8s.io",
    "ingresses",
    strategy=Strategy(
        new_status={"loadBalancer": {}},
        generation=True,
        check=_check,
        update_steps=("metadata", "name", "rules"),
        check_status=_check_status,
        warn=of_ingress,
        warn_status=balancer_warnings,
    ),
    etcd="ingress",
    table=layout(
        NAME,
        Column(
            "Class",
            "The name of the IngressClass resource that should be used for additional configuration",
            at("spec.ingressClassName", NONE),
        ),
        Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule", _hosts),
        Column(
            "Address",
            "Address is a list containing ingress points for the load-balancer",
            lambda doc, now: balancer_addresses(doc),
        ),
        Column(
            "Ports",
            "Ports of TLS configurations that open",
            lambda doc, now: "80, 443" if (doc.get("spec") or {}).get("tls") else "80",
        ),
        AGE,
    ),
)
