"""Evaluators: how objects of each kind use a quota. An evaluator defines which writes count, which resource names it
covers, the usage of an object, and its scopes. Device classes are charged in ``devices``, which needs more than the
claim.

upstream: pkg/quota/v1/evaluator/core, staging/src/k8s.io/apiserver/pkg/quota/v1/generic
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import msgspec

from kcm_cli.api.resource import group_resource
from kcm_cli.api.well_known import BETA_STORAGE_CLASS
from kcm_cli.machinery.quantity import ZERO, Quantity, from_json, make
from kcm_cli.planning.pod_resources import Amounts, Tree
from kcm_cli.planning.quota import pod_usage
from kcm_cli.planning.quota.devices import CLAIM_KIND, DEVICES
from kcm_cli.planning.quota.scopes import ATTRIBUTES_CLASS, NOWHERE, Profile, Requirement, matches
from kcm_cli.planning.quota.write import Write

ONE = make(1)
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"
_ALIASES = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
_SERVICES = ("count/services", "services", "services.nodeports", "services.loadbalancers")
_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_CLAIM_COUNT = "count/persistentvolumeclaims"
_RESOURCE_CLAIM_COUNT = "count/resourceclaims.resource.k8s.io"
_ALL_DEVICES = 32
"""How many devices a claim for all of them is charged with."""


class Evaluator(msgspec.Struct, frozen=True):
    """The rules of one kind. problem: why an object cannot be measured for these names; empty if it can. scopes: those
    that objects of the kind can be in. profile: the scopes of one object.
    """

    counts: Callable[[Write], bool]
    covers: Callable[[str], bool]
    usage: Callable[[Tree, datetime], Amounts]
    problem: Callable[[Tree, Iterable[str]], str]
    scopes: frozenset[str] = frozenset()
    profile: Callable[[Tree], Profile] = lambda doc: NOWHERE

    def in_scope(self, doc: Tree, asked: Iterable[Requirement]) -> bool:
        """Whether an object meets a quota's requirements."""
        return matches(self.profile(doc), asked, self.scopes)


def _no_problem(doc: Tree, names: Iterable[str]) -> str:
    return ""


def _created(attrs: Write) -> bool:
    return attrs.operation == "CREATE" and not attrs.subresource


def _written(attrs: Write) -> bool:
    return attrs.operation in ("CREATE", "UPDATE") and not attrs.subresource


def object_count(group: str, plural: str) -> Evaluator:
    """The evaluator of a kind that is only counted."""
    name = f"count/{group_resource(group, plural)}"
    names = (name, plural) if not group and plural in _ALIASES else (name,)
    usage = dict.fromkeys(names, ONE)
    return Evaluator(_created, names.__contains__, lambda doc, now: usage, _no_problem)


# Services


def _service_usage(service: Tree, now: datetime) -> Amounts:
    spec: Tree = service.get("spec") or {}
    ports: list[Tree] = spec.get("ports") or []
    kind = spec.get("type")
    node_ports = 0
    if kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False):
        node_ports = len(ports)
    elif kind == "LoadBalancer":
        node_ports = sum(1 for port in ports if port.get("nodePort"))
    return {
        "count/services": ONE,
        "services": ONE,
        "services.nodeports": make(node_ports),
        "services.loadbalancers": ONE if kind == "LoadBalancer" else ZERO,
    }


# Persistent volume claims


def _claim_counts(attrs: Write) -> bool:
    if attrs.subresource != "status":
        return _written(attrs)
    new, old = attrs.obj or {}, attrs.old or {}
    return _allocated(new) != _allocated(old) or attribute_classes(new) != attribute_classes(old)


def _claim_covers(name: str) -> bool:
    if name == _CLAIM_COUNT or name in _CLAIMS:
        return True
    return any(name.endswith(_CLASS_SUFFIX + each) for each in _CLAIMS)


def _claim_usage(claim: Tree, now: datetime) -> Amounts:
    usage: Amounts = {"persistentvolumeclaims": ONE, _CLAIM_COUNT: ONE}
    annotations = claim["metadata"].get("annotations") or {}
    spec: Tree = claim["spec"]
    storage_class = annotations.get(BETA_STORAGE_CLASS, spec.get("storageClassName"))
    if storage_class:
        usage[f"{storage_class}{_CLASS_SUFFIX}persistentvolumeclaims"] = ONE
    size = _claim_size(claim)
    if size is not None:
        usage["requests.storage"] = size
        if storage_class:
            usage[f"{storage_class}{_CLASS_SUFFIX}requests.storage"] = size
    return usage


def _claim_size(claim: Tree) -> Quantity | None:
    requested = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    if requested is None:
        return None
    size = from_json(requested).rounded(0)
    allocated = _allocated(claim)
    return max(size, from_json(allocated).rounded(0)) if allocated is not None else size


def _allocated(claim: Tree) -> object:
    return ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")


def attribute_classes(claim: Tree) -> set[str]:
    """The requested and the current VolumeAttributesClass of a claim."""
    status: Tree = claim.get("status") or {}
    names = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {name for name in names if name}


def _claim_profile(claim: Tree) -> Profile:
    return frozenset((ATTRIBUTES_CLASS, name) for name in attribute_classes(claim))


# Resource claims


def _resource_claim_covers(name: str) -> bool:
    return name == _RESOURCE_CLAIM_COUNT or name.endswith(DEVICES)


def _resource_claim_usage(claim: Tree, now: datetime) -> Amounts:
    usage: Amounts = {_RESOURCE_CLAIM_COUNT: ONE}
    devices: Tree = (claim.get("spec") or {}).get("devices") or {}
    for request in devices.get("requests") or ():
        exactly = request.get("exactly")
        chosen: Iterable[Tree] = request.get("firstAvailable") or ([exactly] if exactly else ())
        most: dict[str, int] = {}
        for each in chosen:
            name = each.get("deviceClassName", "") + DEVICES
            most[name] = max(most.get(name, 0), _devices(each))
        for name, count in most.items():
            usage[name] = usage.get(name, ZERO) + make(count)
    return usage


def _devices(request: Tree) -> int:
    mode = request.get("allocationMode") or "ExactCount"
    if mode == "ExactCount":
        return int(request.get("count", 1))
    return _ALL_DEVICES if mode == "All" else 0


EVALUATORS: Mapping[tuple[str, str], Evaluator] = {
    ("", "pods"): Evaluator(
        pod_usage.counts, pod_usage.covers, pod_usage.usage, pod_usage.problem, pod_usage.SCOPES, pod_usage.profile
    ),
    ("", "services"): Evaluator(_written, _SERVICES.__contains__, _service_usage, _no_problem),
    ("", "persistentvolumeclaims"): Evaluator(
        _claim_counts, _claim_covers, _claim_usage, _no_problem, frozenset({ATTRIBUTES_CLASS}), _claim_profile
    ),
    CLAIM_KIND: Evaluator(_written, _resource_claim_covers, _resource_claim_usage, _no_problem),
}
