"""What each metric of an autoscaler proposes.

upstream: pkg/controller/podautoscaler/horizontal.go#computeReplicasForMetric
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from kcm_cli.api.autoscaling import MetricSource, MetricSpec
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics_apis import MetricsApis
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import calculator
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.calculator import Result, Scope, Uncomputable
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.conditions import selector_text
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.requests import requests
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.machinery.quantity import Format, make, parse

UNKNOWN = MetricSource()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Replicas by one metric, what the metric is called, and its status."""

    replicas: int
    metric: str
    status: Doc


class MetricFailed(Exception):
    """A metric proposes nothing: the reason and ``told`` go into an event and a condition, the text is the error's."""

    def __init__(self, reason: str, told: str, text: str, *, by_spec: bool = False) -> None:
        super().__init__(text)
        self.reason = reason
        self.told = told
        self.by_spec = by_spec


@dataclass(frozen=True, slots=True)
class Target:
    """What is scaled: where, its pods, and its size as its status tells it."""

    namespace: str
    selector: Selector
    scope: Scope
    size: int
    pod_level: bool


async def propose(apis: MetricsApis, spec: MetricSpec, target: Target) -> Proposal:
    """Raises MetricFailed."""
    match spec.type:
        case "Resource":
            source = spec.resource or UNKNOWN
            return await _resource(apis, source, target, "resource", f"{source.name} resource")
        case "ContainerResource":
            source = spec.container_resource or UNKNOWN
            return await _resource(apis, source, target, "containerResource", f"{source.container} container")
        case "Pods":
            return await _pods(apis, spec.pods or UNKNOWN, target)
        case "Object":
            return await _object(apis, spec.object or UNKNOWN, target)
        case "External":
            return await _external(apis, spec.external or UNKNOWN, target)
        case _:
            text = f'unknown metric source type "{spec.type}"'
            raise MetricFailed("InvalidMetricSourceType", text, text, by_spec=True)


async def _resource(apis: MetricsApis, source: MetricSource, target: Target, field: str, what: str) -> Proposal:
    type_ = field[0].upper() + field[1:]
    try:
        result, metric = await _usage(apis, source, target)
    except (Uncomputable, FormatError) as error:
        text = f"failed to get {what} metric value: {error}"
        raise MetricFailed(f"FailedGet{type_}Metric", str(error), text) from None
    binary = source.name == "memory"
    current: Doc = {"averageValue": str(make(result.usage, -3, Format.BINARY_SI if binary else Format.DECIMAL_SI))}
    if result.utilization is not None:
        current["averageUtilization"] = result.utilization
    status: Doc = {"name": source.name, "current": current}
    if source.container:
        status["container"] = source.container
    return Proposal(result.replicas, metric, {"type": type_, field: status})


async def _usage(apis: MetricsApis, source: MetricSource, target: Target) -> tuple[Result, str]:
    name, wanted = source.name, source.target
    if wanted.average_value is None and wanted.average_utilization is None:
        raise Uncomputable(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    kind = "usage" if wanted.average_value is not None else "utilization"
    try:
        samples = await apis.resource(target.namespace, target.selector, name, source.container)
    except Uncomputable as error:
        raise Uncomputable(f"failed to get {name} {kind}: unable to get metrics for resource {name}: {error}") from None
    try:
        if wanted.average_value is not None:
            value = parse(wanted.average_value).milli_value()
            return calculator.by_average(target.scope, samples, value, name), f"{name} resource"
        result = calculator.by_utilization(
            target.scope,
            samples,
            lambda: requests(target.scope.pods, name, source.container, pod_level=target.pod_level),
            wanted.average_utilization or 0,
            name,
        )
    except Uncomputable as error:
        raise Uncomputable(f"failed to get {name} {kind}: {error}") from None
    container = " container" if source.container else ""
    return result, f"{name}{container} resource utilization (percentage of request)"


async def _pods(apis: MetricsApis, source: MetricSource, target: Target) -> Proposal:
    name = source.metric.name
    try:
        selector = from_label_selector(source.metric.selector)
        samples = await _named(name, apis.pods(target.namespace, target.selector, name, selector))
        result = calculator.by_average(target.scope, samples, _milli(source.target.average_value))
    except (Uncomputable, FormatError) as error:
        text = f"failed to get pods metric value: {error}"
        raise MetricFailed("FailedGetPodsMetric", str(error), text) from None
    status = {"metric": _identifier(source), "current": {"averageValue": _milli_text(result.usage)}}
    return Proposal(result.replicas, f"pods metric {name}", {"type": "Pods", "pods": status})


async def _object(apis: MetricsApis, source: MetricSource, target: Target) -> Proposal:
    name, about, wanted = source.metric.name, source.described_object, source.target
    per_pod = wanted.type == "AverageValue" and wanted.average_value is not None
    wrapped = ""
    try:
        selector = from_label_selector(source.metric.selector)
        if not per_pod and (wanted.type != "Value" or wanted.value is None):
            raise Uncomputable(
                "invalid object metric source: neither a value target nor an average value target was set"
            )
        wrapped = f"failed to get {name} object metric: " if per_pod else ""
        try:
            usage = await apis.object(target.namespace, about, name, selector)
        except Uncomputable as error:
            place = f"{about.kind} on {target.namespace} {about.name}"  # the order in which v1.36 names them
            raise Uncomputable(f"unable to get metric {name}: {place}/{error}") from None
        result = _shared(usage, source, target) if per_pod else _whole(usage, source, target)
    except (Uncomputable, FormatError) as error:
        text = f"failed to get object metric value: {wrapped}{error}"
        raise MetricFailed("FailedGetObjectMetric", str(error), text) from None
    field = "averageValue" if per_pod else "value"
    status = {
        "metric": _identifier(source),
        "describedObject": msgspec.to_builtins(about),
        "current": {field: _milli_text(result.usage)},
    }
    metric = _external_name(source) if per_pod else f"{about.kind} metric {name}"
    return Proposal(result.replicas, metric, {"type": "Object", "object": status})


async def _external(apis: MetricsApis, source: MetricSource, target: Target) -> Proposal:
    name, wanted = source.metric.name, source.target
    per_pod = wanted.average_value is not None
    wrapped = f"failed to get {name} external metric: " if per_pod else f"failed to get external metric {name}: "
    try:
        if not per_pod and wanted.value is None:
            wrapped = ""
            raise Uncomputable(
                "invalid external metric source: neither a value target nor an average value target was set"
            )
        selector = from_label_selector(source.metric.selector)
        try:
            usage = calculator.total(await apis.external(target.namespace, name, selector))
        except Uncomputable as error:
            place = f"{target.namespace}/{name}/{selector_text(source.metric.selector)}"
            raise Uncomputable(f"unable to get external metric {place}: {error}") from None
        result = _shared(usage, source, target) if per_pod else _whole(usage, source, target)
    except (Uncomputable, FormatError) as error:
        text = f"failed to get {name} external metric value: {wrapped}{error}"
        raise MetricFailed("FailedGetExternalMetric", str(error), text) from None
    field = "averageValue" if per_pod else "value"
    status = {"metric": _identifier(source), "current": {field: _milli_text(result.usage)}}
    return Proposal(result.replicas, _external_name(source), {"type": "External", "external": status})


async def _named(name: str, reading: Awaitable[T]) -> T:
    try:
        return await reading
    except Uncomputable as error:
        raise Uncomputable(f"unable to get metric {name}: {error}") from None


def _shared(usage: int, source: MetricSource, target: Target) -> Result:
    wanted = _milli(source.target.average_value)
    return calculator.by_value_per_pod(target.size, usage, wanted, target.scope.tolerances)


def _whole(usage: int, source: MetricSource, target: Target) -> Result:
    try:
        return calculator.by_value(target.scope, usage, _milli(source.target.value))
    except Uncomputable as error:
        raise Uncomputable(f"unable to calculate ready pods: {error}") from None


def _milli(text: str | None) -> int:
    return parse(text or "0").milli_value()


def _milli_text(value: int) -> str:
    return str(make(value, -3))


def _identifier(source: MetricSource) -> Doc:
    identifier: Doc = msgspec.to_builtins(source.metric)
    return identifier


def _external_name(source: MetricSource) -> str:
    return f"external metric {source.metric.name}({selector_text(source.metric.selector)})"
