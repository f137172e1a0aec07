"""Service.

upstream: pkg/apis/core/v1/defaults.go,
pkg/registry/core/service/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.core import proxies, service_validation
from kcm_cli.sandbox.apiserver.kinds.core import service_families as families
from kcm_cli.sandbox.apiserver.kinds.core.service_allocation import around
from kcm_cli.sandbox.apiserver.kinds.core.service_validation import externally_accessible
from kcm_cli.sandbox.apiserver.kinds.networking.common import balancer_addresses, balancer_warnings
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, of_field, wide
from kcm_cli.sandbox.apiserver.tables.templates import NONE, labels_at
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import metadata
from kcm_cli.sandbox.apiserver.validation.ports import needs_health_check


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    fill.empty(spec, sessionAffinity="None")
    _session_affinity(spec)
    fill.empty(spec, type="ClusterIP")
    for port in spec.get("ports") or ():
        fill.empty(port, protocol="TCP", targetPort=port.get("port", 0))
    kind = spec["type"]
    if externally_accessible(spec):
        fill.empty(spec, externalTrafficPolicy="Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        fill.absent(spec, internalTrafficPolicy="Cluster")
    balancer = doc.setdefault("status", {}).setdefault("loadBalancer", {})
    if kind == "LoadBalancer":
        fill.absent(spec, allocateLoadBalancerNodePorts=True)
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip"):
                fill.absent(ingress, ipMode="VIP")


def _session_affinity(spec: Tree) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def _shown(doc: Tree) -> None:
    # upstream: pkg/registry/core/service/storage/storage.go#defaultOnReadService
    spec = doc["spec"]
    families.normalize(spec, None)
    if not families.needs_cluster_ip(spec):
        spec.pop("internalTrafficPolicy", None)


def _stored(doc: Tree) -> Tree:
    """A Service without cluster IP with its internal traffic policy, which is stored and owned, but not returned."""
    spec = doc["spec"]
    if families.needs_cluster_ip(spec) or not any(
        _owns_policy(entry) for entry in doc["metadata"].get("managedFields") or ()
    ):
        return doc
    return {**doc, "spec": {**spec, "internalTrafficPolicy": "Cluster"}}


def _owns_policy(entry: Tree) -> bool:
    return "f:internalTrafficPolicy" in (entry.get("fieldsV1") or {}).get("f:spec", ())


def drop_by_type(new: Tree, old: Tree) -> None:
    """Remove fields that a change of type makes meaningless, unless the client changes them, too."""
    spec, known = new["spec"], old["spec"]
    if families.needs_cluster_ip(known) and not families.needs_cluster_ip(spec):
        _drop_addresses(spec, known)
    external, balancer = ("NodePort", "LoadBalancer"), "LoadBalancer"
    if known.get("type") in external and spec.get("type") not in external:
        ports = spec.get("ports") or []
        if families.node_ports(known.get("ports") or []) >= families.node_ports(ports):
            for port in ports:
                port.pop("nodePort", None)
    if needs_health_check(known) and not needs_health_check(spec):
        _drop_same(spec, known, "healthCheckNodePort")
    if known.get("type") == balancer and spec.get("type") != balancer:
        _drop_same(spec, known, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if externally_accessible(known) and not externally_accessible(spec):
        _drop_same(spec, known, "externalTrafficPolicy")
    if spec.get("type") != balancer:
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}


def _drop_addresses(spec: Tree, known: Tree) -> None:
    fields = ("clusterIP", "clusterIPs")
    if all(spec.get(field) == known.get(field) for field in fields):
        for field in fields:
            spec.pop(field, None)
    _drop_same(spec, known, "ipFamilies", "ipFamilyPolicy")


def _drop_same(spec: Tree, known: Tree, *fields: str) -> None:
    for field in fields:
        if spec.get(field) == known.get(field):
            spec.pop(field, None)


def _cluster_ip(doc: Tree, now: datetime) -> str:
    ips = (doc.get("spec") or {}).get("clusterIPs")
    return str(ips[0]) if ips else NONE


def _ports(doc: Tree, now: datetime) -> str:
    return ",".join(_port(port) for port in (doc.get("spec") or {}).get("ports") or ()) or NONE


def _port(port: Tree) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', '')}"


def _external_ip(doc: Tree, now: datetime) -> str:
    spec = doc.get("spec") or {}
    external = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            balancer = balancer_addresses(doc)
            return ",".join([*filter(None, [balancer]), *external]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


KIND = Kind(
    "",
    "services",
    defaults=_defaults,
    strategy=Strategy(
        new_status={"loadBalancer": {}},
        on_update=drop_by_type,
        names=metadata.label,
        on_read=_shown,
        stored=_stored,
        check=service_validation.check,
        check_change=service_validation.check_change,
        update_steps=("metadata", "change", "rules"),
        check_status=service_validation.validate_service_status,
        warn=service_validation.service_warnings,
        warn_status=balancer_warnings,
        creates_on_update=True,
        returns_object_on_delete=True,
    ),
    around=around,
    handlers={"proxy": proxies.of_service},
    etcd="services/specs",
    table=layout(
        NAME,
        Column("Type", *of_field("Service", "spec.type")),
        Column("Cluster-IP", "ServiceSpec.clusterIP", _cluster_ip),
        Column("External-IP", "ServiceSpec.externalIPs", _external_ip),
        Column("Port(s)", "ServiceSpec.ports", _ports),
        AGE,
        wide("Selector", "ServiceSpec.selector", labels_at("spec.selector")),
    ),
    selectable=Selectable({"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"}),
)
