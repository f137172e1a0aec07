"""Pod.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/pod/strategy.go, pkg/printers/internalversion/printers.go
"""

import re
from collections.abc import Iterator

from kcm_cli.api.well_known import APP_ARMOR
from kcm_cli.machinery import names
from kcm_cli.planning.pod_resources import aggregate, supported
from kcm_cli.planning.qos import qos_class
from kcm_cli.sandbox.apiserver.apply.fieldset import of_paths
from kcm_cli.sandbox.apiserver.apply.resets import Writable
from kcm_cli.sandbox.apiserver.defaulting import fill, resources
from kcm_cli.sandbox.apiserver.defaulting.pod import drop_init_annotations, pod_spec
from kcm_cli.sandbox.apiserver.kinds.core import connections, pod_validation, proxies
from kcm_cli.sandbox.apiserver.kinds.core.binding import bind
from kcm_cli.sandbox.apiserver.kinds.core.pod_columns import completed, row
from kcm_cli.sandbox.apiserver.kinds.core.pod_eviction import evict
from kcm_cli.sandbox.apiserver.kinds.core.pod_fields import SELECTABLE
from kcm_cli.sandbox.apiserver.kinds.core.pod_resize import validate_resize
from kcm_cli.sandbox.apiserver.kinds.core.pod_status import validate_pod_status
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy import parts, pod_fields
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings.containers import app_armor_field
from kcm_cli.sandbox.apiserver.strategy.warnings.pods import warnings_of_pod
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, wide
from kcm_cli.sandbox.apiserver.trees import each_at, keep
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.addresses import ip_warnings
from kcm_cli.sandbox.apiserver.validation.security import app_armor
from kcm_cli.sandbox.apiserver.validation.windows import containers_of

_TOKEN_VOLUME = re.compile(rb"kube-api-access-[a-z0-9]{5}")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def _defaults(doc: Tree) -> None:
    """Default a Pod."""
    spec = doc.setdefault("spec", {})
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for container in containers:
        requests_from_limits(container)
    if spec.get("resources") is not None:
        pod_level(spec)
    fill.absent(spec, enableServiceLinks=True)
    if spec.get("hostNetwork"):
        _host_ports(containers)
    pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _status_defaults(doc)


def _status_defaults(doc: Tree) -> None:
    """Default the metadata and the status."""
    drop_init_annotations(doc["metadata"])
    status = doc.setdefault("status", {})
    if status:
        _status(status)


def _host_ports(containers: list[Tree]) -> None:
    for item in containers:
        for port in item.get("ports") or ():
            if port.get("containerPort"):
                fill.empty(port, hostPort=port["containerPort"])


def _status(status: Tree) -> None:
    if ip := status.get("podIP"):
        addresses = status.get("podIPs")
        if not addresses or addresses[0].get("ip") != ip:
            status["podIPs"] = [{"ip": ip}]
    elif addresses := status.get("podIPs"):
        status["podIP"] = addresses[0].get("ip", "")
    for field in _STATUSES:
        for item in status.get(field) or ():
            _status_resources(item)
    _status_resources(status)


def _status_resources(item: Tree) -> None:
    resources.resource_list(item.get("allocatedResources"))
    resources.limits_and_requests(item.get("resources"))


_HUGE = "hugepages-"


def pod_level(spec: Tree) -> None:
    """Default pod-level resources."""
    own = spec["resources"]
    if own.get("limits") or own.get("requests"):
        _huge_page_limits(spec, own)
    if own.get("limits"):
        _requests(spec, own)


def _huge_page_limits(spec: Tree, own: Tree) -> None:
    limits = dict(own.get("limits") or {})
    for name, amount in aggregate(spec, "limits").items():
        if name.startswith(_HUGE) and name not in (own.get("requests") or {}):
            limits.setdefault(name, str(amount))
    if limits:
        own["limits"] = limits


def _requests(spec: Tree, own: Tree) -> None:
    requests = dict(own.get("requests") or {})
    for name, amount in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(amount))
    for name, value in own["limits"].items():
        if supported(name):
            requests.setdefault(name, value)
    if requests:
        own["requests"] = requests


def requests_from_limits(container: Tree) -> None:
    """Default the requests of a pod's container (not of a template's) to its limits."""
    resources = container.get("resources")
    if not resources or not resources.get("limits"):
        return
    requests = resources.setdefault("requests", {})
    for name, value in resources["limits"].items():
        requests.setdefault(name, value)


def of_pod(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a new pod. Updates have none."""
    if old is not None:
        return []
    found: list[str] = []
    if messages := names.dns1123_label(new["metadata"].get("name", "")):
        text = "this is used in the Pod's hostname, which can result in surprising behavior"
        found.append(f"metadata.name: {text}; a DNS label is recommended: [{' '.join(messages)}]")
    return found + warnings_of_pod(new["spec"], new["metadata"], "")


def of_pod_status(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about addresses in a pod's status."""
    return each_at(ip_warnings, new, "status.podIPs[].ip") + each_at(ip_warnings, new, "status.hostIPs[].ip")


_ENDED = ("Succeeded", "Failed")


def _new(doc: Tree) -> None:
    spec = doc["spec"]
    status: Tree = {"phase": "Pending", "qosClass": qos_class(spec)}
    doc["status"] = status
    pod_fields.drop_gated(spec)
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "lastProbeTime": None,
                "lastTransitionTime": doc["metadata"].get("creationTimestamp"),
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "reason": "SchedulingGated",
                "status": "False",
                "type": "PodScheduled",
            }
        ]
    labels = doc["metadata"].get("labels") or {}
    if affinity := spec.get("affinity"):
        for term in _affinity_terms(affinity):
            _merge_keys(term, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_keys(constraint, labels)
    if doc["metadata"].get("annotations"):
        apply_app_armor(doc)


def _update(new: Tree, old: Tree) -> None:
    pod_fields.drop_gated(new["spec"], old["spec"])


def _affinity_terms(affinity: Tree) -> Iterator[Tree]:
    for field in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(field) or {}
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted["podAffinityTerm"]
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()


def _merge_keys(term: Tree, labels: dict[str, str]) -> None:
    """Convert matchLabelKeys to requirements with the values of the pod's own labels."""
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if added:
        term["labelSelector"] = {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), *added]}


def _strategy_status(new: Tree, old: Tree) -> None:
    new["metadata"].pop("deletionTimestamp", None)
    keep(new["metadata"], old["metadata"], "ownerReferences")
    status, known = new.setdefault("status", {}), old.get("status") or {}
    if not status.get("qosClass") and "qosClass" in known:
        status["qosClass"] = known["qosClass"]
    for field in ("resourceClaimStatuses", "extendedResourceClaimStatus"):
        if not status.get(field) and known.get(field):  # upstream, since 1.37: kubernetes#139772
            status[field] = known[field]
    if "nodeAllocatableResourceClaimStatuses" not in known:  # DRANodeAllocatableResources is off
        status.pop("nodeAllocatableResourceClaimStatuses", None)
    _keep_observed_generation(status, known)


def _keep_observed_generation(status: Tree, known: Tree) -> None:
    if not status.get("observedGeneration") and known.get("observedGeneration"):
        status["observedGeneration"] = known["observedGeneration"]
    observed: dict[str, list[int]] = {}
    for condition in known.get("conditions") or ():
        observed.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = observed.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def grace_period(doc: Tree, requested: int | None) -> int:
    """The grace period of a deletion in seconds: 0 for a pod without a node, or that has ended."""
    spec = doc.get("spec") or {}
    if not spec.get("nodeName") or (doc.get("status") or {}).get("phase") in _ENDED:
        return 0
    period = spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
    return 1 if period < 0 else int(period)


def _ephemeral_containers(new: Tree, old: Tree) -> None:
    spec = dict(old["spec"])
    keep(spec, new["spec"], "ephemeralContainers")
    new["spec"] = spec
    parts.keep_metadata(new, old)


def _resize(new: Tree, old: Tree) -> None:
    spec, known = new["spec"], old["spec"]
    kinds = ("containers", "initContainers")
    if all(len(spec.get(kind) or ()) == len(known.get(kind) or ()) for kind in kinds):
        changed = dict(known)
        for kind in kinds:
            if kind in known:
                changed[kind] = _resized(spec[kind], known[kind])
        keep(changed, spec, "resources")
        new["spec"] = changed
        parts.keep_metadata(new, old)


def _resized(after: list[Tree], before: list[Tree]) -> list[Tree]:
    """The old containers with new resources. Renamed containers are not changed; validation refuses them."""
    if any(container.get("name") != old.get("name") for container, old in zip(after, before, strict=True)):
        return after
    result: list[Tree] = []
    for container, old in zip(after, before, strict=True):
        merged = dict(old)
        for field in ("resources", "resizePolicy"):
            keep(merged, container, field)
        result.append(merged)
    return result


def apply_app_armor(doc: Tree) -> None:
    """Set AppArmor fields from annotations, unless the pod's profile is the same."""
    spec, annotations = doc["spec"], doc["metadata"].get("annotations") or {}
    if not any(key.startswith(APP_ARMOR) for key in annotations) or (spec.get("os") or {}).get("name") == "windows":
        return
    pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, _ in containers_of(spec, ""):
        annotation = annotations.get(APP_ARMOR + container.get("name", ""))
        context = container.get("securityContext") or {}
        if annotation is None or context.get("appArmorProfile") is not None:
            continue
        profile = app_armor_field(annotation)
        if profile is not None and not any(app_armor(profile, "")) and profile != pod:
            container["securityContext"] = {**context, "appArmorProfile": profile}


def _without_token_name(pod: bytes) -> bytes:
    """An encoded pod with NUL, which JSON does not contain, for the random name of its token volume wherever it is.

    Empty for a pod with several such names: whether it is valid depends on where each of them is.
    """
    names = set(_TOKEN_VOLUME.findall(pod))
    if len(names) > 1:
        return b""
    return pod.replace(names.pop(), b"\0") if names else pod


KIND = Kind(
    "",
    "pods",
    defaults=_defaults,
    status_defaults=_status_defaults,
    strategy=Strategy(
        generation=True,
        on_create=_new,
        on_update=_update,
        on_status=_strategy_status,
        check=pod_validation.check_pod,
        update_steps=("metadata", "name", "rules"),
        check_status=validate_pod_status,
        grace_period=grace_period,
        returns_object_on_delete=True,
        warn=of_pod,
        warn_status=of_pod_status,
        alike=_without_token_name,
    ),
    subresources={
        "ephemeralcontainers": Strategy(
            names=None,
            generation=True,
            on_update=_ephemeral_containers,
            check_change=pod_validation.validate_ephemeral_containers,
        ),
        "resize": Strategy(names=None, generation=True, on_update=_resize, check_change=validate_resize),
    },
    handlers={
        "binding": bind,
        "eviction": evict,
        "log": connections.log,
        "exec": connections.remote_command,
        "attach": connections.remote_command,
        "portforward": connections.port_forward,
        "proxy": proxies.of_pod,
    },
    table=layout(
        NAME,
        Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        Column("Status", "The aggregate status of the containers in this pod."),
        Column(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the last container in "
            "this pod has restarted.",
        ),
        AGE,
        wide("IP", "PodStatus.podIP"),
        wide("Node", "PodSpec.nodeName"),
        wide("Nominated Node", "PodStatus.nominatedNodeName"),
        wide("Readiness Gates", "PodSpec.readinessGates"),
        row=row,
        completed=completed,
    ),
    selectable=SELECTABLE,
    writable={
        "status": Writable(of_paths(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))),
    },
)
