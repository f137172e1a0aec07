"""The number of replicas that each metric proposes.

upstream: pkg/controller/podautoscaler/horizontal.go#computeReplicasForMetric
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.autoscaling import MetricSource, MetricSpec
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import calculator
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.calculator import Result, Scope, requests
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import Reading, Samples, Uncomputable
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import format_go, from_label_selector
from kcm_cli.machinery.quantity import Format, make, parse

UNKNOWN = MetricSource()


class Proposal(msgspec.Struct, frozen=True):
    """The replicas that a metric proposes, the metric's name, and its status."""

    replicas: int
    metric: str
    status: Doc


class MetricFailed(Exception):
    """A metric has no proposal. Its reason and ``message`` go into an Event and a condition; the text is the
    error's."""

    def __init__(self, reason: str, message: str, text: str, *, by_spec: bool = False) -> None:
        super().__init__(text)
        self.reason = reason
        self.message = message
        self.by_spec = by_spec


class Target(msgspec.Struct, frozen=True):
    """The target: its namespace, its pods, and its size in the status."""

    namespace: str
    scope: Scope
    size: int
    pod_level: bool


def source_of(spec: MetricSpec) -> MetricSource:
    """The field of a metric's spec that its type names."""
    by_type = {
        "Resource": spec.resource,
        "ContainerResource": spec.container_resource,
        "Pods": spec.pods,
        "Object": spec.object,
        "External": spec.external,
    }
    return by_type.get(spec.type) or UNKNOWN


def is_valid(spec: MetricSpec) -> bool:
    """Whether a metric can be read: its type has the required target, and its selector is valid."""
    source = source_of(spec)
    wanted = source.target
    try:
        from_label_selector(source.metric.selector)
    except FormatError:
        return False
    match spec.type:
        case "Resource" | "ContainerResource":
            return wanted.average_value is not None or wanted.average_utilization is not None
        case "Object":
            return _is_per_pod(source) or (wanted.type == "Value" and wanted.value is not None)
        case "External":
            return wanted.average_value is not None or wanted.value is not None
        case type_:
            return type_ == "Pods"


def propose(spec: MetricSpec, reading: Reading, target: Target) -> Proposal:
    """Compute the proposal of a metric from its reading. Raises MetricFailed."""
    source = source_of(spec)
    match spec.type:
        case "Resource":
            return _resource(source, reading, target, "resource", f"{source.name} resource")
        case "ContainerResource":
            return _resource(source, reading, target, "containerResource", f"{source.container} container")
        case "Pods":
            return _pods(source, reading, target)
        case "Object":
            return _object(source, reading, target)
        case "External":
            return _external(source, reading, target)
        case _:
            text = f'unknown metric source type "{spec.type}"'
            raise MetricFailed("InvalidMetricSourceType", text, text, by_spec=True)


def _resource(source: MetricSource, reading: Reading, target: Target, field: str, what: str) -> Proposal:
    type_ = field[0].upper() + field[1:]
    try:
        result, metric = _usage(source, reading, target)
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


def _usage(source: MetricSource, reading: Reading, target: Target) -> tuple[Result, str]:
    name, wanted = source.name, source.target
    if wanted.average_value is None and wanted.average_utilization is None:
        raise Uncomputable(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    kind = "usage" if wanted.average_value is not None else "utilization"
    try:
        samples = _samples(reading)
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


def _pods(source: MetricSource, reading: Reading, target: Target) -> Proposal:
    name = source.metric.name
    try:
        from_label_selector(source.metric.selector)
        try:
            samples = _samples(reading)
        except Uncomputable as error:
            raise Uncomputable(f"unable to get metric {name}: {error}") from None
        result = calculator.by_average(target.scope, samples, _milli(source.target.average_value))
    except (Uncomputable, FormatError) as error:
        text = f"failed to get pods metric value: {error}"
        raise MetricFailed("FailedGetPodsMetric", str(error), text) from None
    status = {"metric": _identifier(source), "current": {"averageValue": _milli_text(result.usage)}}
    return Proposal(result.replicas, f"pods metric {name}", {"type": "Pods", "pods": status})


def _object(source: MetricSource, reading: Reading, target: Target) -> Proposal:
    name, about, wanted = source.metric.name, source.described_object, source.target
    per_pod = _is_per_pod(source)
    wrapped = ""
    try:
        from_label_selector(source.metric.selector)
        if not per_pod and (wanted.type != "Value" or wanted.value is None):
            raise Uncomputable(
                "invalid object metric source: neither a value target nor an average value target was set"
            )
        wrapped = f"failed to get {name} object metric: " if per_pod else ""
        try:
            (usage,) = _values(reading)
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


def _external(source: MetricSource, reading: Reading, target: Target) -> Proposal:
    name, wanted = source.metric.name, source.target
    per_pod = wanted.average_value is not None
    wrapped = f"failed to get {name} external metric: " if per_pod else f"failed to get external metric {name}: "
    try:
        if not per_pod and wanted.value is None:
            wrapped = ""
            raise Uncomputable(
                "invalid external metric source: neither a value target nor an average value target was set"
            )
        from_label_selector(source.metric.selector)
        try:
            usage = calculator.total(_values(reading))
        except Uncomputable as error:
            place = f"{target.namespace}/{name}/{format_go(source.metric.selector)}"
            raise Uncomputable(f"unable to get external metric {place}: {error}") from None
        result = _shared(usage, source, target) if per_pod else _whole(usage, source, target)
    except (Uncomputable, FormatError) as error:
        text = f"failed to get {name} external metric value: {wrapped}{error}"
        raise MetricFailed("FailedGetExternalMetric", str(error), text) from None
    field = "averageValue" if per_pod else "value"
    status = {"metric": _identifier(source), "current": {field: _milli_text(result.usage)}}
    return Proposal(result.replicas, _external_name(source), {"type": "External", "external": status})


def _is_per_pod(source: MetricSource) -> bool:
    """Whether an object's metric is divided by the number of pods."""
    return source.target.type == "AverageValue" and source.target.average_value is not None


def _samples(reading: Reading) -> Samples:
    """The samples of a reading. Raises Uncomputable."""
    if not isinstance(reading.value, Mapping):
        raise reading.failure or Uncomputable("no samples")
    return reading.value


def _values(reading: Reading) -> tuple[int, ...]:
    """The values of a reading. Raises Uncomputable."""
    if isinstance(reading.value, int):
        return (reading.value,)
    if not isinstance(reading.value, tuple):
        raise reading.failure or Uncomputable("no values")
    return reading.value


def _shared(usage: int, source: MetricSource, target: Target) -> Result:
    wanted = _milli(source.target.average_value)
    return calculator.by_value_per_pod(target.scope.current, target.size, usage, wanted, target.scope.tolerances)


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
    return f"external metric {source.metric.name}({format_go(source.metric.selector)})"
