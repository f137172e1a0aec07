"""Built-in resources that are a second form of another: events.k8s.io and autoscaling/v1.

Documents of a request are converted to the form that is stored, and back for its answer. Metadata stays as it is.
The autoscaling/v1 form keeps what it has no fields for in annotations.

upstream: pkg/apis/events/v1/conversion.go, pkg/apis/autoscaling/v1/conversion.go (v1.36)
"""

from collections.abc import Callable
from typing import Any

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.types import Tree

_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"

_EVENT_NAMES = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
)
_EVENT_ALWAYS: Tree = {"reportingComponent": "", "reportingInstance": ""}
"""Fields that the core form has even when they are empty."""
_EVENT_OPTIONAL = frozenset(["reportingComponent", "reportingInstance", "message", "reason", "action"])


def to_storage(served: Served, doc: Tree) -> Tree:
    """The document in the form that is stored. Custom objects are the business of ``crd``."""
    if not served.converts or served.info.custom:
        return doc
    return _CONVERTERS[served.info.gvr][0](doc)


def from_storage(served: Served, doc: Tree) -> Tree:
    """A stored document in the form of the resource; never changes the given one."""
    if not served.converts or served.info.custom:
        return doc
    return _CONVERTERS[served.info.gvr][1](doc)


def _event_to_core(doc: Tree) -> Tree:
    names = dict(_EVENT_NAMES)
    core = {names.get(key, key): value for key, value in doc.items()}
    return {**_EVENT_ALWAYS, **core, "apiVersion": "v1"}


def _event_from_core(doc: Tree) -> Tree:
    names = {core: ours for ours, core in _EVENT_NAMES}
    ours = {names.get(key, key): value for key, value in doc.items() if value or key not in _EVENT_OPTIONAL}
    return {**ours, "apiVersion": "events.k8s.io/v1"}


def _hpa_to_v2(doc: Tree) -> Tree:
    metadata, annotations = dict(doc["metadata"]), dict(doc["metadata"].get("annotations") or {})
    spec, status = dict(doc.get("spec") or {}), dict(doc.get("status") or {})
    metrics: list[Tree] = _annotated(annotations, _METRICS) or []
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
        metrics = [{"type": "Resource", "resource": resource}, *metrics]
    if metrics:
        spec["metrics"] = metrics
    behavior = _annotated(annotations, _BEHAVIOR)
    if behavior:
        spec["behavior"] = behavior
    current: list[Tree] = _annotated(annotations, _CURRENT) or []
    now = status.pop("currentCPUUtilizationPercentage", None)
    if now is not None:
        shown = {"name": "cpu", "current": {"averageUtilization": now, "averageValue": "0"}}
        current = [{"type": "Resource", "resource": shown}, *current]
    status["currentMetrics"] = current or None
    conditions = _annotated(annotations, _CONDITIONS)
    if conditions:
        status["conditions"] = conditions
    _set(metadata, annotations)
    return {**doc, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec, "status": status}


def _hpa_from_v2(doc: Tree) -> Tree:
    metadata, annotations = dict(doc["metadata"]), dict(doc["metadata"].get("annotations") or {})
    spec, status = dict(doc.get("spec") or {}), dict(doc.get("status") or {})
    others = []
    for metric in spec.pop("metrics", None) or ():
        target = (metric.get("resource") or {}).get("target") or {}
        cpu = metric.get("type") == "Resource" and metric["resource"].get("name") == "cpu"
        if cpu and target.get("averageUtilization") is not None:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
        else:
            others.append(metric)
    _annotate(annotations, _METRICS, others)
    _annotate(annotations, _BEHAVIOR, spec.pop("behavior", None))
    shown = []
    for metric in status.pop("currentMetrics", None) or ():
        current = (metric.get("resource") or {}).get("current") or {}
        cpu = metric.get("type") == "Resource" and metric["resource"].get("name") == "cpu"
        if cpu and current.get("averageUtilization") is not None:
            status["currentCPUUtilizationPercentage"] = current["averageUtilization"]
        else:
            shown.append(metric)
    _annotate(annotations, _CURRENT, shown)
    _annotate(annotations, _CONDITIONS, status.pop("conditions", None))
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    _set(metadata, annotations)
    return {**doc, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def _annotated(annotations: dict[str, str], key: str) -> Any:
    text = annotations.pop(key, "")
    try:
        return codec.decode(text, object) if text else None
    except codec.DecodeError:
        return None


def _annotate(annotations: dict[str, str], key: str, value: object) -> None:
    if value:
        annotations[key] = codec.encode(value).decode()


def _set(metadata: Tree, annotations: dict[str, str]) -> None:
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)


_CONVERTERS: dict[GVR, tuple[Callable[[Tree], Tree], Callable[[Tree], Tree]]] = {
    GVR("events.k8s.io", "v1", "events"): (_event_to_core, _event_from_core),
    GVR("autoscaling", "v1", "horizontalpodautoscalers"): (_hpa_to_v2, _hpa_from_v2),
}
