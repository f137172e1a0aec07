"""Services.

upstream: pkg/apis/core/validation/validation.go#validateService; pkg/api/service/warnings.go
"""

from kcm_cli.api.well_known import TOPOLOGY_HINTS, TOPOLOGY_MODE
from kcm_cli.sandbox.apiserver.kinds.core.service_addresses import validate_family_change, validate_ip_change
from kcm_cli.sandbox.apiserver.kinds.networking.common import host_name, points
from kcm_cli.sandbox.apiserver.trees import each_at
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, go_print, labels, metadata, ports, rules
from kcm_cli.sandbox.apiserver.validation.ports import needs_health_check
from kcm_cli.sandbox.apiserver.validation.service_addresses import is_headless, validate_cluster_ips

EXTERNAL_TYPES = ("LoadBalancer", "NodePort")
_TRAFFIC_POLICIES = rules.choices("core.v1.ServiceSpec", "internalTrafficPolicy")

_ONLY_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL_NAME = "may not be set for ExternalName services"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_MAX_AFFINITY_S = 86400


def check(doc: Tree, old: Tree | None) -> Errors:
    """A Service that is created or, with its old version, updated."""
    spec = doc["spec"]
    known = old["spec"] if old else {}
    yield from _topology(doc["metadata"].get("annotations") or {})
    yield from _by_type(spec)
    yield from _REST(spec, "spec")
    yield from validate_cluster_ips(spec, known.get("clusterIPs") or ())
    for index, value in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        wrong = addresses.legacy_ip(value, path, known.get("externalIPs") or ())
        yield from wrong or addresses.endpoint_ip(value, path)
    yield from _TYPE(spec, "spec")
    yield from _port_collisions(spec)
    yield from _source_ranges(doc, old)
    yield from _POLICIES(spec, "spec")


def check_change(new: Tree, old: Tree) -> Errors:
    """What an update of a Service must not change."""
    spec, known = new["spec"], old["spec"]
    yield from validate_ip_change(spec, known)
    yield from validate_family_change(spec, known)
    yield from _balancer_class(spec, known)
    checked = needs_health_check(spec) and needs_health_check(known)
    if checked and spec.get("healthCheckNodePort") != known.get("healthCheckNodePort"):
        yield errors.forbidden("spec.healthCheckNodePort", errors.IMMUTABLE)


def validate_service_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    if new["spec"].get("type") != "LoadBalancer":
        if points(new):
            detail = "may only be used when `spec.type` is 'LoadBalancer'"
            yield errors.forbidden("status.loadBalancer.ingress", detail)
        return
    known = [item["ip"] for item in points(old) if item.get("ip")]
    for index, item in enumerate(points(new)):
        yield from _ingress_point(item, f"status.loadBalancer.ingress[{index}]", known)


def externally_accessible(spec: Tree) -> bool:
    """Whether a Service accepts traffic from outside of the cluster."""
    kind = spec.get("type")
    return kind in EXTERNAL_TYPES or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _topology(annotations: Tree) -> Errors:
    mode, hints = annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
    return [errors.invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, detail)]


def _by_type(spec: Tree) -> Errors:
    kind, headless = spec.get("type"), is_headless(spec)
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield errors.required("spec.ports")
    if kind in EXTERNAL_TYPES and headless:
        yield errors.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _EXTERNAL_NAME(spec, "spec")


def _external_name(name: str, path: str) -> Errors:
    name = name.removesuffix(".")
    return rules.SUBDOMAIN(name, path) if name else [errors.required(path)]


_EXTERNAL_NAME = rules.fields(
    rules.forbidden("clusterIPs", _NOT_EXTERNAL_NAME),
    rules.forbidden("ipFamilies", _NOT_EXTERNAL_NAME),
    rules.forbidden("ipFamilyPolicy", _NOT_EXTERNAL_NAME, zero=False),
    rules.always("externalName", _external_name),
)


def _ports(items: list[Tree], path: str) -> Errors:
    unique = rules.Unique()
    for index, port in enumerate(items):
        place = f"{path}[{index}]"
        if name := port.get("name"):
            yield from rules.LABEL(name, f"{place}.name")
            yield from unique(name, f"{place}.name")
        elif len(items) > 1:
            yield errors.required(f"{place}.name")
        yield from _PORT(port, place)


_PORT = rules.fields_of(
    "core.v1.ServicePort",
    rules.always("port", ports.number, default=0),
    rules.one_of("protocol"),
    rules.always("targetPort", ports.number_or_name, default=0),
    rules.optional("appProtocol", labels.validate_key),
)


def _port_collisions(spec: Tree) -> Errors:
    items = spec.get("ports") or ()
    if spec.get("type") == "ClusterIP":
        for index, port in enumerate(items):
            if port.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                yield errors.forbidden(f"spec.ports[{index}].nodePort", detail)
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(items):
        if node_port := port.get("nodePort"):
            if (key := (port.get("protocol", ""), node_port)) in seen:
                yield errors.duplicate(f"spec.ports[{index}].nodePort", node_port)
            seen.add(key)
    seen.clear()
    for index, port in enumerate(items):
        if (key := (port.get("protocol", ""), port.get("port", 0))) in seen:
            shown = go_print.internal("core.ServicePort", {"protocol": key[0], "port": key[1]})
            yield errors.duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


_WHEN = "when session affinity type is ClientIP"
_SECONDS = rules.between(1, _MAX_AFFINITY_S, f"must be greater than 0 and less than {_MAX_AFFINITY_S}")
_AFFINITIES = {
    "None": rules.fields(
        rules.forbidden("sessionAffinityConfig", "must not be set when session affinity is None", zero=False)
    ),
    "ClientIP": rules.fields(
        rules.present(
            "sessionAffinityConfig",
            rules.fields(
                rules.present(
                    "clientIP", rules.fields(rules.present("timeoutSeconds", _SECONDS, detail=_WHEN)), detail=_WHEN
                ),
            ),
            detail=_WHEN,
        ),
    ),
}


_KNOWN_AFFINITY = rules.fields_of("core.v1.ServiceSpec", rules.one_of("sessionAffinity"))
_REST = rules.fields(
    rules.optional("ports", _ports),
    rules.optional("selector", labels.validate_labels),
    rules.by_value("sessionAffinity", _AFFINITIES, _KNOWN_AFFINITY),
)
_TYPE = rules.fields_of("core.v1.ServiceSpec", rules.one_of("type"))


def _source_ranges(doc: Tree, old: Tree | None) -> Errors:
    spec = doc["spec"]
    balancer = spec.get("type") == "LoadBalancer"
    if ranges := spec.get("loadBalancerSourceRanges"):
        # upstream: pkg/apis/core/validation/validation.go#validateService writes the path with a capital letter
        path = "spec.LoadBalancerSourceRanges"
        if not balancer:
            yield errors.forbidden(path, _ONLY_BALANCER)
        known = [value.strip() for value in ((old or {}).get("spec") or {}).get("loadBalancerSourceRanges") or ()]
        for index, value in enumerate(ranges):
            yield from addresses.legacy_cidr(value.strip(), f"{path}[{index}]", known)
        return
    value = (doc["metadata"].get("annotations") or {}).get(_RANGES)
    if value is None:
        return
    path = f"metadata.annotations[{_RANGES}]"
    if not balancer:
        yield errors.forbidden(path, _ONLY_BALANCER)
    if old is not None and (old["metadata"].get("annotations") or {}).get(_RANGES) == value:
        return
    for block in value.strip().split(",") if value.strip() else ():
        yield from addresses.legacy_cidr(block.strip(), path)


def _balancer(spec: Tree, path: str) -> Errors:
    allocate, balancer = spec.get("allocateLoadBalancerNodePorts"), spec.get("type") == "LoadBalancer"
    if allocate is not None and not balancer:
        yield errors.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCER)
    if allocate is None and balancer:
        yield errors.required("allocateLoadBalancerNodePorts")
    yield from _balancer_class(spec, None)


def _external_policy(spec: Tree, path: str) -> Errors:
    policy, place = spec.get("externalTrafficPolicy", ""), "spec.externalTrafficPolicy"
    if externally_accessible(spec):
        yield from errors.one_of(place, policy, _TRAFFIC_POLICIES)
    elif policy:
        yield errors.invalid(place, policy, "may only be set for externally-accessible services")
    port = spec.get("healthCheckNodePort", 0)
    if needs_health_check(spec):
        yield from _HEALTH_PORT(spec, path)
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield errors.invalid("spec.healthCheckNodePort", port, detail)


_HEALTH_PORT = rules.fields(rules.required("healthCheckNodePort", ports.number))


def _internal_policy(spec: Tree, path: str) -> Errors:
    if spec.get("internalTrafficPolicy") is None and spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP"):
        yield errors.required("spec.internalTrafficPolicy")


_POLICIES = rules.fields_of(
    "core.v1.ServiceSpec",
    _balancer,
    _external_policy,
    _internal_policy,
    rules.maybe_one_of("internalTrafficPolicy"),
    rules.maybe_one_of("trafficDistribution", "PreferClose", "PreferSameZone", "PreferSameNode"),
)


def _balancer_class(spec: Tree, known: Tree | None) -> Errors:
    value, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if spec.get("type") != "LoadBalancer":
        if value is not None:
            yield errors.forbidden(path, _ONLY_BALANCER)
        return
    if known is not None and known.get("type") == "LoadBalancer" and known.get("loadBalancerClass") != value:
        yield errors.invalid(path, value, "may not change once set")
    if value is not None:
        yield from labels.validate_key(value, path)


def _ingress_point(item: Tree, path: str, known: list[str]) -> Errors:
    ip, mode, host = item.get("ip", ""), item.get("ipMode"), item.get("hostname", "")
    if ip:
        yield from addresses.legacy_ip(ip, f"{path}.ip", known)
    if mode is None:
        if ip:
            yield errors.required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not ip:
        yield errors.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in ("Proxy", "VIP"):
        yield errors.not_supported(f"{path}.ipMode", mode, ["Proxy", "VIP"])
    if host:
        yield from host_name(host, f"{path}.hostname")


def service_warnings(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a Service."""
    spec = new["spec"]
    found: list[str] = []
    if TOPOLOGY_HINTS in (new["metadata"].get("annotations") or {}):
        found.append(f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
    cluster_ip, kind = spec.get("clusterIP", ""), spec.get("type")
    if cluster_ip not in ("", "None"):
        found += each_at(addresses.ip_warnings, new, "spec.clusterIPs[]")
    headless = kind == "ClusterIP" and cluster_ip == "None"
    external = spec.get("externalIPs") or ()
    if headless:
        found += _headless_warnings(spec)
    found += each_at(addresses.ip_warnings, new, "spec.externalIPs[]")
    if external and not headless and kind != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    found += each_at(addresses.ip_warnings, new, "spec.loadBalancerIP")
    found += each_at(addresses.cidr_warnings, new, "spec.loadBalancerSourceRanges[]")
    if kind == "ExternalName" and external:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _headless_warnings(spec: Tree) -> list[str]:
    found: list[str] = []
    if spec.get("loadBalancerIP"):
        found.append("spec.loadBalancerIP is ignored for headless services")
    if spec.get("externalIPs"):
        found.append("spec.externalIPs is ignored for headless services")
    if spec.get("sessionAffinity") != "None":
        found.append("spec.SessionAffinity is ignored for headless services")
    return found
