"""Strategy of pods.

Source: pkg/registry/core/pod/strategy.go.
"""

from collections.abc import Iterator

from kcm_cli.planning.qos import qos_class
from kcm_cli.sandbox.apiserver.strategy import parts, pod_fields
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import pod
from kcm_cli.sandbox.apiserver.validation.pod_resize import validate_resize
from kcm_cli.sandbox.apiserver.validation.pod_status import validate_pod_status

_ENDED = ("Succeeded", "Failed")


def _new(doc: Tree) -> None:
    parts.first_generation(doc)
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
        pod_fields.apply_app_armor(doc)


def _update(new: Tree, old: Tree) -> None:
    pod_fields.drop_gated(new["spec"], old["spec"])
    parts.spec_update(new, old)


def _affinity_terms(affinity: Tree) -> Iterator[Tree]:
    for field in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(field) or {}
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted["podAffinityTerm"]
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()


def _merge_keys(term: Tree, labels: dict[str, str]) -> None:
    """Turn matchLabelKeys into requirements for the values that the pod itself has."""
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


def _status(new: Tree, old: Tree) -> None:
    keep(new, old, "spec")
    new["metadata"].pop("deletionTimestamp", None)
    keep(new["metadata"], old["metadata"], "ownerReferences")
    status, known = new.setdefault("status", {}), old.get("status") or {}
    if not status.get("qosClass") and "qosClass" in known:
        status["qosClass"] = known["qosClass"]
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
    """Seconds until a deletion takes effect: none for a pod that no node has or that has ended."""
    spec = doc.get("spec") or {}
    if not spec.get("nodeName") or (doc.get("status") or {}).get("phase") in _ENDED:
        return 0
    period = spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
    return 1 if period < 0 else int(period)


def _ephemeral_containers(new: Tree, old: Tree) -> None:
    added = new["spec"].get("ephemeralContainers")
    new["spec"] = dict(old["spec"])
    if added is None:
        new["spec"].pop("ephemeralContainers", None)
    else:
        new["spec"]["ephemeralContainers"] = added
    keep(new, old, "status")
    parts.keep_metadata(new, old)
    parts.bump_if_spec_changed(new, old)


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
    keep(new, old, "status")
    parts.bump_if_spec_changed(new, old)


def _resized(after: list[Tree], before: list[Tree]) -> list[Tree]:
    """The old containers with new resources; renamed containers stay as they came, to be refused."""
    if any(container.get("name") != old.get("name") for container, old in zip(after, before, strict=True)):
        return after
    result: list[Tree] = []
    for container, old in zip(after, before, strict=True):
        merged = dict(old)
        for field in ("resources", "resizePolicy"):
            keep(merged, container, field)
        result.append(merged)
    return result


def _check_resize(new: Tree, old: Tree) -> list[FieldError]:
    return validate_resize(new, old, qos_class)


POD = Strategy(
    on_create=_new,
    on_update=_update,
    on_status=_status,
    check_create=pod.validate_pod,
    check_update=pod.validate_pod_update,
    check_status=validate_pod_status,
    grace_period=grace_period,
    returns_object_on_delete=True,
    warn=pods.of_pod,
    warn_status=pods.of_pod_status,
)
POD_EPHEMERAL_CONTAINERS = Strategy(on_update=_ephemeral_containers, check_update=pod.validate_ephemeral_containers)
POD_RESIZE = Strategy(on_update=_resize, check_update=_check_resize)
