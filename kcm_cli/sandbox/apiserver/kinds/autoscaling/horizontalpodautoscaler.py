"""HorizontalPodAutoscaler.

Source: pkg/apis/autoscaling/v1/defaults.go, pkg/apis/autoscaling/validation,
pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Mapping
from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata, numbers, quantities

_WINDOW_MAX_S, _PERIOD_MAX_S = 3600, 1800
_SELECTS = ("Disabled", "Max", "Min")
_POLICIES = ("Percent", "Pods")
_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"


def validate_autoscaler(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    yield from _spec(doc["spec"], None)


def validate_autoscaler_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from _spec(new["spec"], old["spec"])


def validate_autoscaler_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    counters = ("currentReplicas", "desiredReplicas")
    yield from numbers.non_negative(new.get("status") or {}, counters, "status")


def _spec(spec: Tree, known: Tree | None) -> Errors:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    least = 0 if known is not None and known.get("minReplicas") == 0 else 1
    if low is not None and low < least:
        yield errors.invalid("spec.minReplicas", low, f"must be greater than or equal to {least}")
    if high == 0:
        yield errors.required("spec.maxReplicas", "must be set and greater than 0")
    elif high < 0:
        yield errors.invalid("spec.maxReplicas", high, "must be greater than or equal to 1")
    if low is not None and high < low:
        yield errors.invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    yield from _target(spec.get("scaleTargetRef") or {}, (known or {}).get("scaleTargetRef"))
    yield from _metrics(spec.get("metrics") or [], low, (known or {}).get("metrics") or [])
    behavior = spec.get("behavior") or {}
    for field in ("scaleUp", "scaleDown"):
        rules = behavior.get(field)
        if rules is not None:
            yield from _rules(rules, f"spec.behavior.{field}")


def _target(ref: Tree, known: Tree | None) -> Errors:
    yield from validate_reference(ref, "spec.scaleTargetRef")
    if known is not None and all(ref.get(field) == known.get(field) for field in ("apiVersion", "kind")):
        return
    if problem := version_problem(ref, core=ref.get("kind") == "ReplicationController"):
        yield errors.invalid("spec.scaleTargetRef.apiVersion", ref.get("apiVersion", ""), problem)


def _metrics(metrics: list[Tree], low: int | None, known: list[Tree]) -> Errors:
    lenient = any(
        item.get("type") == "Object"
        and item.get("object") is not None
        and version_problem(item["object"].get("describedObject") or {}, core=True)
        for item in known
    )
    for index, metric in enumerate(metrics):
        yield from validate_metric(metric, f"spec.metrics[{index}]", lenient=lenient)
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        yield errors.forbidden("spec.metrics", _ZERO)


def _rules(rules: Tree, path: str) -> Errors:
    window_s, select, tolerance = (
        rules.get(field) for field in ("stabilizationWindowSeconds", "selectPolicy", "tolerance")
    )
    if window_s is not None and not 0 <= window_s <= _WINDOW_MAX_S:
        high = f"must be less than or equal to {_WINDOW_MAX_S}"
        detail = "must be greater than or equal to zero" if window_s < 0 else high
        yield errors.invalid(f"{path}.stabilizationWindowSeconds", window_s, detail)
    if select is not None and select not in _SELECTS:
        yield errors.not_supported(f"{path}.selectPolicy", select, _SELECTS)
    policies = rules.get("policies") or ()
    if not policies:
        yield errors.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        yield from _policy(policy, f"{path}.policies[{index}]")
    if tolerance is not None:
        yield from quantities.non_negative(tolerance, f"{path}.tolerance")


def _policy(policy: Tree, path: str) -> Errors:
    kind, period_s = policy.get("type", ""), policy.get("periodSeconds", 0)
    if kind not in _POLICIES:
        yield errors.not_supported(f"{path}.type", kind, _POLICIES)
    for field in ("value", "periodSeconds"):
        if policy.get(field, 0) <= 0:
            yield errors.invalid(f"{path}.{field}", policy.get(field, 0), quantities.NOT_POSITIVE)
    if period_s > _PERIOD_MAX_S:
        yield errors.invalid(f"{path}.periodSeconds", period_s, f"must be less than or equal to {_PERIOD_MAX_S}")


_FIELDS: Mapping[str, str] = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}
_ORDER = ("object", "external", "pods", "resource", "containerResource")
_TYPES = tuple(sorted(_FIELDS))
_RAW_OR_UTILIZATION = "must set either a target raw value or a target utilization"
_NOT_BOTH = "may not set both a target raw value and a target utilization"


def version_problem(ref: Tree, *, core: bool) -> str:
    """What is wrong with the API version of a reference; ``core``: it may be without a group."""
    version = ref.get("apiVersion", "")
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    return "" if core or "/" in version and not version.startswith("/") else "apiVersion must specify API group"


def validate_metric(metric: Tree, path: str, *, lenient: bool) -> Errors:
    """One metric; ``lenient``: an older object has references with bad API versions."""
    kind = metric.get("type", "")
    if not kind:
        yield errors.required(f"{path}.type", "must specify a metric source type")
    if kind not in _TYPES:
        yield errors.not_supported(f"{path}.type", kind, _TYPES)
    present = [field for field in _ORDER if metric.get(field) is not None]
    if present:
        yield from _source(present[0], metric[present[0]], f"{path}.{present[0]}", lenient)
    expected = _FIELDS.get(kind)
    if expected is None:
        yield errors.not_supported(f"{path}.type", kind, _TYPES)
    elif expected not in present:
        yield errors.required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) > 1:
        detail = "must populate the given metric source only"
        yield from (errors.forbidden(f"{path}.{field}", detail) for field in present if field != expected)


def _source(field: str, source: Tree, path: str, lenient: bool) -> Errors:
    target, place = source.get("target") or {}, f"{path}.target"
    if field == "object":
        yield from _described(source.get("describedObject") or {}, f"{path}.describedObject", lenient)
    if field in ("resource", "containerResource"):
        yield from _resource(field, source, path)
    else:
        yield from _identifier(source.get("metric") or {}, f"{path}.metric")
    yield from _metric_target(target, place)
    value, average, utilization = (target.get(name) for name in ("value", "averageValue", "averageUtilization"))
    match field:
        case "object" if value is None and average is None:
            yield errors.required(f"{place}.averageValue", "must set either a target value or averageValue")
        case "external" if value is None and average is None:
            detail = "must set either a target value for metric or a per-pod target"
            yield errors.required(f"{place}.averageValue", detail)
        case "external" if value is not None and average is not None:
            yield errors.forbidden(f"{place}.value", "may not set both a target value for metric and a per-pod target")
        case "pods" if average is None:
            yield errors.required(f"{place}.averageValue", "must specify a positive target averageValue")
        case "resource" | "containerResource" if utilization is None and average is None:
            yield errors.required(f"{place}.averageUtilization", _RAW_OR_UTILIZATION)
        case "resource" | "containerResource" if utilization is not None and average is not None:
            yield errors.forbidden(f"{place}.averageValue", _NOT_BOTH)


def _described(ref: Tree, path: str, lenient: bool) -> Errors:
    yield from validate_reference(ref, path)
    problem = "" if lenient else version_problem(ref, core=True)
    if problem:
        yield errors.invalid(f"{path}.apiVersion", ref.get("apiVersion", ""), problem)


def validate_reference(ref: Tree, path: str) -> Errors:
    """Kind and name of a reference."""
    for field in ("kind", "name"):
        value = ref.get(field, "")
        if value:
            yield from errors.invalid_each(f"{path}.{field}", value, names.path_segment(value))
        else:
            yield errors.required(f"{path}.{field}")


def _resource(field: str, source: Tree, path: str) -> Errors:
    name, container = source.get("name", ""), source.get("container", "")
    if not name:
        yield errors.required(f"{path}.name", "must specify a resource name")
    if field == "resource":
        return
    if name:
        yield from errors.invalid_each(f"{path}.name", name, quantities.container_name(name))
    if container:
        yield from errors.invalid_each(f"{path}.container", container, names.dns1123_label(container))
        return
    yield errors.required(f"{path}.container", "must specify a container")


def _identifier(metric: Tree, path: str) -> Errors:
    name = metric.get("name", "")
    if not name:
        return [errors.required(f"{path}.name", "must specify a metric name")]
    return errors.invalid_each(f"{path}.name", name, names.path_segment(name))


def _metric_target(target: Tree, path: str) -> Errors:
    kind, utilization = target.get("type", ""), target.get("averageUtilization")
    if not kind:
        yield errors.required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield errors.invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and from_json(value).sign <= 0:
            yield errors.invalid(f"{path}.{field}", value, "must be positive")
    if utilization is not None and utilization < 1:
        yield errors.invalid(f"{path}.averageUtilization", utilization, errors.NOT_POSITIVE)


def _defaults(doc: Tree) -> None:
    """Version v2; what v1 has of it, in its own version."""
    spec = doc.setdefault("spec", {})
    fill.absent(spec, (("minReplicas", 1),))
    if doc.get("apiVersion") == "autoscaling/v1":
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        _scaling_rules(fill.made(behavior, "scaleUp"), 0, [("Pods", 4), ("Percent", 100)])
        _scaling_rules(fill.made(behavior, "scaleDown"), None, [("Percent", 100)])


def _scaling_rules(rules: Tree, window_s: int | None, policies: list[tuple[str, int]]) -> None:
    if window_s is not None:
        fill.absent(rules, (("stabilizationWindowSeconds", window_s),))
    fill.absent(rules, (("selectPolicy", "Max"),))
    if rules.get("policies") is None:
        rules["policies"] = [{"type": kind, "value": value, "periodSeconds": 15} for kind, value in policies]


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        doc["metadata"]["name"],
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metric_cells(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        created(doc, now),
    ]


def _metric_cells(specs: "list[Tree] | tuple[()]", states: "list[Tree] | tuple[()]") -> str:
    if not specs:
        return NONE
    texts = []
    for index, spec in enumerate(specs):
        source = _FIELDS.get(spec["type"])
        state = states[index] if index < len(states) else {}
        texts.append("<unknown type>" if source is None else _metric(spec["type"], spec[source], state.get(source)))
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


def _metric(type_: str, spec: Tree, state: Tree | None) -> str:
    target, current = spec.get("target") or {}, (state or {}).get("current") or {}
    unknown = "<unknown>"
    if type_ == "Pods":
        return f"{current.get('averageValue') or unknown}/{target.get('averageValue', '')}"
    named = f"{spec['name']}: " if type_ in ("Resource", "ContainerResource") else ""
    if target.get("averageValue") is not None:
        suffix = "" if named else " (avg)"
        return f"{named}{current.get('averageValue') or unknown}/{target['averageValue']}{suffix}"
    if not named:
        return f"{current.get('value') or unknown}/{target.get('value', '')}"
    now, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    shown = unknown if now is None else f"{now}%"
    return f"{named}{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"


KIND = Kind(
    "autoscaling",
    "horizontalpodautoscalers",
    defaults=_defaults,
    strategy=Strategy(
        on_create=parts.new_with_status({"desiredReplicas": 0, "currentMetrics": None}, generation=False),
        on_update=parts.keep_status,
        on_status=parts.status_update,
        check_create=validate_autoscaler,
        check_update=validate_autoscaler_update,
        check_status=validate_autoscaler_status,
    ),
    table=Layout(
        (
            NAME,
            Column("Reference", "HorizontalPodAutoscalerSpec.scaleTargetRef"),
            Column("Targets", "HorizontalPodAutoscalerSpec.metrics"),
            Column("MinPods", "HorizontalPodAutoscalerSpec.minReplicas"),
            Column("MaxPods", "HorizontalPodAutoscalerSpec.maxReplicas"),
            Column("Replicas", "HorizontalPodAutoscalerStatus.currentReplicas"),
            AGE,
        ),
        _cells,
    ),
)
