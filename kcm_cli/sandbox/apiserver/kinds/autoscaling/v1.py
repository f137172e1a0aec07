"""HorizontalPodAutoscalers of autoscaling/v1, which have the fields that are new in v2 in annotations.

Metrics in annotations have the form of v2beta1: names and targets are not nested.

upstream: pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/annotations.go (v1.36)
"""

from collections.abc import Mapping
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.kinds.autoscaling.v1_forms import Behavior, Condition, Metric, has_form
from kcm_cli.sandbox.apiserver.trees import at, put
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.go_print import internal

_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_BEHAVIOR_TYPE = "autoscaling.HorizontalPodAutoscalerBehavior"
_DEFAULT_CPU_PERCENT = 80

_Fields = tuple[tuple[str, str], ...]
"""Pairs of the name in v2beta1 and the dotted path in v2."""
_SUBJECT: Mapping[str, _Fields] = {
    "object": (("target", "describedObject"), ("metricName", "metric.name"), ("selector", "metric.selector")),
    "pods": (("metricName", "metric.name"), ("selector", "metric.selector")),
    "resource": (("name", "name"),),
    "containerResource": (("name", "name"), ("container", "container")),
    "external": (("metricName", "metric.name"), ("metricSelector", "metric.selector")),
}
_RESOURCE_TARGET = (
    ("targetAverageUtilization", "target.averageUtilization"),
    ("targetAverageValue", "target.averageValue"),
)
_TARGETS: Mapping[str, _Fields] = {
    "object": (("targetValue", "target.value"), ("averageValue", "target.averageValue")),
    "pods": (("targetAverageValue", "target.averageValue"),),
    "resource": _RESOURCE_TARGET,
    "containerResource": _RESOURCE_TARGET,
    "external": (("targetValue", "target.value"), ("targetAverageValue", "target.averageValue")),
}
_RESOURCE_CURRENT = (
    ("currentAverageUtilization", "current.averageUtilization"),
    ("currentAverageValue", "current.averageValue"),
)
_CURRENTS: Mapping[str, _Fields] = {
    "object": (("currentValue", "current.value"), ("averageValue", "current.averageValue")),
    "pods": (("currentAverageValue", "current.averageValue"),),
    "resource": _RESOURCE_CURRENT,
    "containerResource": _RESOURCE_CURRENT,
    "external": (("currentValue", "current.value"), ("currentAverageValue", "current.averageValue")),
}
_ORDER = (
    *("name", "target", "metricName", "metricSelector", "targetValue", "targetAverageUtilization"),
    *("targetAverageValue", "currentValue", "currentAverageUtilization", "currentAverageValue"),
    *("selector", "averageValue", "container"),
)
"""The order of fields in annotations."""
_NEVER_ABSENT: Mapping[str, str] = {
    "object.targetValue": "0",
    "pods.targetAverageValue": "0",
    "object.currentValue": "0",
    "pods.currentAverageValue": "0",
    "resource.currentAverageValue": "0",
    "containerResource.currentAverageValue": "0",
    "external.currentValue": "0",
}
_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message")


def to_v2(doc: Tree) -> Tree:
    """The document as autoscaling/v2, the storage version."""
    metadata, annotations = dict(doc["metadata"]), dict(doc["metadata"].get("annotations") or {})
    spec, status = dict(doc.get("spec") or {}), dict(doc.get("status") or {})
    target = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [_newer(item, _TARGETS) for item in _annotated(annotations, _METRICS, Metric)]
    metrics += [] if target is None else [_cpu(target)]
    spec["metrics"] = metrics or [_cpu(_DEFAULT_CPU_PERCENT)]
    behavior = _lowered(_parsed(annotations.pop(_BEHAVIOR, "")))
    if behavior and has_form(behavior, Behavior):
        spec["behavior"] = behavior
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)  # omitempty in v2
    percent = status.pop("currentCPUUtilizationPercentage", None)
    shown = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}
    current = [_newer(item, _CURRENTS) for item in _annotated(annotations, _CURRENT, Metric)]
    status["currentMetrics"] = current or (None if percent is None else [shown])
    if conditions := _annotated(annotations, _CONDITIONS, Condition):
        status["conditions"] = conditions
    put(metadata, "annotations", annotations)
    return {**doc, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec, "status": status}


def from_v2(doc: Tree) -> Tree:
    """A stored document as autoscaling/v1. Does not change ``doc``."""
    metadata, annotations = dict(doc["metadata"]), dict(doc["metadata"].get("annotations") or {})
    spec, status = dict(doc.get("spec") or {}), dict(doc.get("status") or {})
    metrics: list[Tree] = spec.pop("metrics", None) or []
    percents = [_cpu_percent(metric, "target") for metric in metrics]
    if (percent := next((item for item in percents if item is not None), None)) is not None:
        spec["targetCPUUtilizationPercentage"] = percent
    others = [_older(metric, _TARGETS) for metric, item in zip(metrics, percents, strict=True) if item is None]
    _annotate(annotations, _METRICS, others)
    current: list[Tree] = status.pop("currentMetrics", None) or []
    for item in (_cpu_percent(metric, "current") for metric in current):
        if item is not None:
            status["currentCPUUtilizationPercentage"] = item
    _annotate(annotations, _CURRENT, [_older(metric, _CURRENTS) for metric in current])
    behavior = spec.pop("behavior", None)
    _annotate(annotations, _BEHAVIOR, None if behavior is None else internal(_BEHAVIOR_TYPE, behavior))
    conditions: list[Tree] = status.pop("conditions", None) or []
    _annotate(annotations, _CONDITIONS, [_picked(item, _CONDITION_FIELDS) for item in conditions])
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    put(metadata, "annotations", annotations)
    return {**doc, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def _cpu(percent: int) -> Tree:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _cpu_percent(metric: Tree, kind: str) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    percent: int | None = (resource.get(kind) or {}).get("averageUtilization")
    return percent


def _older(metric: Tree, values: Mapping[str, _Fields]) -> Tree:
    """A metric of v2 as v2beta1."""
    older: Tree = {"type": metric.get("type", "")}
    for source in _SUBJECT:
        if (given := metric.get(source)) is not None:
            fields = (*_SUBJECT[source], *values[source])
            found = {name: at(given, way, _NEVER_ABSENT.get(f"{source}.{name}")) for name, way in fields}
            older[source] = {name: found[name] for name in _ORDER if found.get(name) is not None}
    return older


def _newer(metric: Tree, values: Mapping[str, _Fields]) -> Tree:
    """A metric of v2beta1 as v2."""
    newer: Tree = {"type": metric.get("type", "")}
    for source in _SUBJECT:
        if (given := metric.get(source)) is None:
            continue
        found: Tree = {}
        for name, way in (*_SUBJECT[source], *values[source]):
            value = given.get(name, _NEVER_ABSENT.get(f"{source}.{name}"))
            if value is not None:
                _put(found, way, value)
        if values is _TARGETS:
            found["target"] = _typed(source, found.get("target") or {})
        newer[source] = found
    return newer


def _typed(source: str, target: Tree) -> Tree:
    """A target with its type, which v2beta1 does not have."""
    if source == "object" and "averageValue" in target and from_json(target.get("value", "0")) == 0:
        target = {key: value for key, value in target.items() if key != "value"}
    if "averageUtilization" in target:
        kind = "Utilization"
    elif "value" not in target or (source == "object" and "averageValue" in target):
        kind = "AverageValue"
    else:
        kind = "Value"
    return {"type": kind, **target}


def _put(holder: Tree, way: str, value: object) -> None:
    *steps, last = way.split(".")
    for step in steps:
        holder = holder.setdefault(step, {})
    holder[last] = value


def _picked(item: Tree, names: tuple[str, ...]) -> Tree:
    return {name: item[name] for name in names if name in item}


def _lowered(value: Any) -> Any:
    """The value with field names in lower camel case and without nulls."""
    if isinstance(value, list):
        return [_lowered(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key[:1].lower() + key[1:]: _lowered(item) for key, item in value.items() if item is not None}


def _parsed(text: str) -> Any:
    return codec.decode_or_none(text, object) if text else None


def _annotated(annotations: dict[str, str], key: str, form: type) -> list[Tree]:
    found = _lowered(_parsed(annotations.pop(key, "")))
    return found if isinstance(found, list) and all(has_form(item, form) for item in found) else []


def _annotate(annotations: dict[str, str], key: str, value: object) -> None:
    annotations.pop(key, None)
    if value:
        annotations[key] = codec.encode(value).decode()
