"""Defaults of limits, quotas, nodes, endpoints and of the kinds of networking, storage, scheduling, access control.

Source: pkg/apis/{core,networking,discovery,storage,scheduling,rbac}/v1/defaults.go.
"""

from kcm_cli.sandbox.apiserver.defaulting import fill, resources, volumes
from kcm_cli.sandbox.apiserver.types import Tree

_RBAC = "rbac.authorization.k8s.io"
_RANGES = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_CSI_DRIVER = (
    ("attachRequired", True),
    ("podInfoOnMount", False),
    ("storageCapacity", False),
    ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
    ("requiresRepublish", False),
    ("seLinuxMount", False),
)


def limit_range(doc: Tree) -> None:
    for item in doc.setdefault("spec", {}).get("limits") or ():
        if item.get("type") == "Container":
            _container_limits(item)
        for field in _RANGES:
            resources.resource_list(item.get(field))


def _container_limits(item: Tree) -> None:
    """The default limit is the maximum; the default request is the limit or else the minimum."""
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def resource_quota(doc: Tree) -> None:
    resources.resource_list(doc.setdefault("spec", {}).get("hard"))
    status = doc.setdefault("status", {})
    resources.resource_list(status.get("hard"))
    resources.resource_list(status.get("used"))


def node(doc: Tree) -> None:
    spec, status = doc.setdefault("spec", {}), doc.setdefault("status", {})
    if block := spec.get("podCIDR"):
        if not spec.get("podCIDRs") or spec["podCIDRs"][0] != block:
            spec["podCIDRs"] = [block]
    elif blocks := spec.get("podCIDRs"):
        spec["podCIDR"] = blocks[0]
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    resources.resource_list(status.get("capacity"))
    resources.resource_list(status.get("allocatable"))


def endpoints(doc: Tree) -> None:
    for subset in doc.get("subsets") or ():
        for port in subset.get("ports") or ():
            fill.empty(port, (("protocol", "TCP"),))


def endpoint_slice(doc: Tree) -> None:
    for port in doc.get("ports") or ():
        fill.absent(port, (("name", ""), ("protocol", "TCP")))


def network_policy(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                fill.absent(port, (("protocol", "TCP"),))


def ingress_class(doc: Tree) -> None:
    parameters = (doc.get("spec") or {}).get("parameters")
    if parameters is not None:
        fill.absent(parameters, (("scope", "Cluster"),))


def storage_class(doc: Tree) -> None:
    fill.absent(doc, (("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")))


def csi_driver(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    fill.absent(spec, _CSI_DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def volume_attachment(doc: Tree) -> None:
    inline = ((doc.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec")
    if inline is not None:
        volumes.persistent_source(inline)


def priority_class(doc: Tree) -> None:
    fill.absent(doc, (("preemptionPolicy", "PreemptLowerPriority"),))


def role_binding(doc: Tree) -> None:
    fill.empty(fill.made(doc, "roleRef"), (("apiGroup", _RBAC),))
    for subject in doc.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            fill.empty(subject, (("apiGroup", _RBAC),))


def api_service(doc: Tree) -> None:
    service = doc.setdefault("spec", {}).get("service")
    if service is not None:
        fill.absent(service, (("port", 443),))
