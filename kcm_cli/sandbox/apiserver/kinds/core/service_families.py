"""Sets the fields of a Service that depend on each other: families, addresses, and what an update omits.

upstream: pkg/registry/core/service/storage/{alloc,storage}.go, pkg/registry/core/service/strategy.go
"""

from kcm_cli.sandbox.apiserver.trees import put
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors
from kcm_cli.sandbox.apiserver.validation.ports import needs_health_check
from kcm_cli.sandbox.apiserver.validation.service_addresses import FAMILIES, validate_cluster_ips

_POLICY = "spec.ipFamilyPolicy"
_RELEASE = "must be 'SingleStack' to release the secondary"
_MULTIPLE = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"


def needs_cluster_ip(spec: Tree) -> bool:
    """Whether a Service has a cluster IP: all but those of type ExternalName."""
    return spec.get("type") != "ExternalName"


def needs_node_port(spec: Tree) -> bool:
    """Whether node ports are allocated for its ports."""
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def normalize(spec: Tree, known: Tree | None) -> None:
    """Make ``clusterIP`` and ``clusterIPs`` consistent if a client set one of them."""
    if known is None:
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return
    value, before = spec.get("clusterIP", ""), known.get("clusterIP", "")
    if known.get("clusterIPs") and not spec.get("clusterIPs") and value == before:
        spec["clusterIPs"] = list(known["clusterIPs"])
    if value == before or (spec.get("clusterIPs") or []) != (known.get("clusterIPs") or []):
        return
    put(spec, "clusterIPs", [value] if value else [])


def patch_allocated(spec: Tree, known: Tree) -> None:
    """Keep the allocations that an update omits."""
    if needs_cluster_ip(known) and needs_cluster_ip(spec):
        if not spec.get("clusterIP") and known.get("clusterIP"):
            spec["clusterIP"] = known["clusterIP"]
        if not spec.get("clusterIPs") and known.get("clusterIPs"):
            spec["clusterIPs"] = list(known["clusterIPs"])
    if needs_node_port(known) and needs_node_port(spec):
        _patch_node_ports(spec.get("ports") or [], known.get("ports") or [])
    if needs_health_check(known) and needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = known.get("healthCheckNodePort", 0)


def _patch_node_ports(ports: list[Tree], known: list[Tree]) -> None:
    used = node_ports(ports) & node_ports(known)
    by_name = {port.get("name", ""): port.get("nodePort", 0) for port in known}
    for port in ports:
        value = by_name.get(port.get("name", ""), 0)
        if not port.get("nodePort") and value and value not in used:
            port["nodePort"] = value


def node_ports(ports: list[Tree]) -> set[int]:
    """The node ports among the ports of a Service."""
    return {port["nodePort"] for port in ports if port.get("nodePort")}


def init_families(spec: Tree, known: Tree | None, configured: tuple[str, ...]) -> list[FieldError]:
    """Set ``ipFamilyPolicy`` and ``ipFamilies``; returns errors. ``configured``: the cluster's families, its default
    first."""
    if not needs_cluster_ip(spec) or (known is not None and _keeps_both(spec, known)):
        return []
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = _default_policy(spec, known)
    if found := [*validate_cluster_ips(spec, (known or {}).get("clusterIPs") or ())]:
        return found
    found = [] if known is None else _reductions(spec, known)
    found += _single(spec)
    found += _infer(spec, configured)
    if found:
        return found
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        _headless_without_selector(spec, configured)
        return []
    return _configured_families(spec, configured)


def _keeps_both(spec: Tree, known: Tree) -> bool:
    """Whether a PreferDualStack Service keeps its families although those of the cluster may have changed."""
    policies = {spec.get("ipFamilyPolicy"), known.get("ipFamilyPolicy", "PreferDualStack")}
    same = all((spec.get(field) or []) == (known.get(field) or []) for field in ("clusterIPs", "ipFamilies"))
    return same and policies == {"PreferDualStack"} and spec.get("type") == known.get("type")


def _default_policy(spec: Tree, known: Tree | None) -> str:
    if known is not None and known.get("ipFamilyPolicy") is not None:
        return str(known["ipFamilyPolicy"])
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        return "RequireDualStack"
    return "SingleStack"


def _reductions(spec: Tree, known: Tree) -> list[FieldError]:
    policy = spec["ipFamilyPolicy"]
    found: list[FieldError] = []
    for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        values, before = spec.get(field) or [], known.get(field) or []
        if policy == "SingleStack":
            if values == before and len(values) > 1:
                spec[field] = values[:1]
        elif values and len(values) < len(before):
            found.append(errors.invalid(_POLICY, policy, f"{_RELEASE} {what}"))
    return found


def _single(spec: Tree) -> list[FieldError]:
    if spec["ipFamilyPolicy"] != "SingleStack":
        return []
    return [
        errors.invalid(_POLICY, "SingleStack", f"{_MULTIPLE} {what} are specified")
        for field, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(field) or ()) == 2
    ]


def _infer(spec: Tree, configured: tuple[str, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    families = list(spec.get("ipFamilies") or ())
    for index, ip in enumerate(spec.get("clusterIPs") or ()):
        if ip == "None":
            break
        family = "IPv6" if addresses.is_ipv6(ip) else "IPv4"
        if index < len(families):
            continue
        if family in configured:
            families.append(family)
        else:
            detail = f"{family} is not configured on this cluster"
            found.append(errors.invalid(f"spec.clusterIPs[{index}]", spec["clusterIPs"], detail))
    if families:
        spec["ipFamilies"] = families
    return found


def _other(family: str) -> str:
    return FAMILIES[1 - FAMILIES.index(family)]


def _headless_without_selector(spec: Tree, configured: tuple[str, ...]) -> None:
    families = list(spec.get("ipFamilies") or configured[:1])
    if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
        families.append(_other(families[0]))
    spec["ipFamilies"] = families


def _configured_families(spec: Tree, configured: tuple[str, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    policy = spec["ipFamilyPolicy"]
    families = list(spec.get("ipFamilies") or ())
    if policy == "RequireDualStack" and len(configured) < 2:
        detail = "this cluster is not configured for dual-stack services"
        found.append(errors.invalid(_POLICY, policy, detail))
    for index, family in enumerate(families):
        if family not in configured:
            found.append(errors.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
    if found:
        return found
    families = families or [configured[0]]
    if policy != "SingleStack" and len(families) == 1 and len(configured) == 2:
        families.append(_other(families[0]))
    spec["ipFamilies"] = families
    return []
