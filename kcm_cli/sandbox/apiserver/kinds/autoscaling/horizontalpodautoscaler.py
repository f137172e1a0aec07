"""HorizontalPodAutoscaler.

upstream: pkg/apis/autoscaling/v1/defaults.go, pkg/apis/autoscaling/validation,
pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go, pkg/printers/internalversion/printers.go
"""

from collections.abc import Mapping
from datetime import datetime

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.autoscaling import v1
from kcm_cli.sandbox.apiserver.registry.conversion import StoredAs
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, status_check
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, UNSET, Column, layout, of_field, shown
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, quantities, rules


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec, known = doc["spec"], {} if old is None else old["spec"]
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    least = 0 if known.get("minReplicas") == 0 else 1
    if low is not None and low < least:
        yield errors.invalid("spec.minReplicas", low, f"must be greater than or equal to {least}")
    yield from _MAX(spec, "spec")
    if low is not None and high < low:
        yield errors.invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    yield from _target(spec.get("scaleTargetRef") or {}, known.get("scaleTargetRef"))
    yield from _metrics(spec.get("metrics") or [], low, known.get("metrics") or [])
    yield from _BEHAVIOR(spec, "spec")


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


_POSITIVE = rules.at_least(1, quantities.NOT_POSITIVE)
_PERIOD = rules.at_most(1800, "must be less than or equal to 1800")
_POLICY = rules.fields(
    rules.always("type", rules.enum("Percent", "Pods")),
    rules.always("value", _POSITIVE, default=0),
    rules.always("periodSeconds", _POSITIVE, _PERIOD, default=0),
)
_RULES = rules.fields(
    rules.optional(
        "stabilizationWindowSeconds",
        rules.at_least(0, "must be greater than or equal to zero"),
        rules.at_most(3600, "must be less than or equal to 3600"),
    ),
    rules.maybe_one_of("selectPolicy", "Disabled", "Max", "Min"),
    rules.required("policies", rules.items(_POLICY), detail="must specify at least one Policy"),
    rules.optional("tolerance", quantities.non_negative),
)
_BEHAVIOR = rules.fields(
    rules.optional("behavior", rules.fields(rules.optional("scaleUp", _RULES), rules.optional("scaleDown", _RULES))),
)
_MAX = rules.fields(
    rules.required(
        "maxReplicas",
        rules.at_least(0, "must be greater than or equal to 1"),
        detail="must be set and greater than 0",
    ),
)
_STATUS = rules.fields(*rules.counters("currentReplicas", "desiredReplicas"))

_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"


_FIELDS: Mapping[str, str] = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}
_ORDER = ("object", "external", "pods", "resource", "containerResource")
_TYPES = tuple(sorted(_FIELDS))


validate_reference = rules.fields(rules.required("kind", rules.SEGMENT), rules.required("name", rules.SEGMENT))
"""Kind and name of a reference."""

_NAME = rules.required("name", detail="must specify a resource name")
_IDENTIFIER = rules.always(
    "metric", rules.fields(rules.required("name", rules.SEGMENT, detail="must specify a metric name")), default={}
)
_IDENTITY: Mapping[str, rules.Rule] = {
    "object": rules.fields(rules.always("describedObject", validate_reference, default={})),
    "resource": rules.fields(_NAME),
    "containerResource": rules.fields(
        _NAME,
        rules.nonempty("name", rules.form(quantities.container_name)),
        rules.required("container", rules.LABEL, detail="must specify a container"),
    ),
}


_positive = rules.must(lambda amount: from_json(amount).sign > 0, "must be positive")
_target_type = rules.must(
    lambda kind: kind in ("Utilization", "Value", "AverageValue"),
    "must be either Utilization, Value, or AverageValue",
)
_TARGET = rules.fields(
    rules.required("type", detail="must specify a metric target type"),
    rules.always("type", _target_type),
    rules.optional("value", _positive),
    rules.optional("averageValue", _positive),
    rules.optional("averageUtilization", rules.at_least(1, errors.NOT_POSITIVE)),
)


_UTILIZATION = (
    ("averageValue", "averageUtilization"),
    "must set either a target raw value or a target utilization",
    "may not set both a target raw value and a target utilization",
)
_AMOUNTS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "object": (("value", "averageValue"), "must set either a target value or averageValue", ""),
    "external": (
        ("value", "averageValue"),
        "must set either a target value for metric or a per-pod target",
        "may not set both a target value for metric and a per-pod target",
    ),
    "pods": (("averageValue",), "must specify a positive target averageValue", ""),
    "resource": _UTILIZATION,
    "containerResource": _UTILIZATION,
}
"""The fields of a target of which one is needed, the errors if none is set and if both are."""


def _source(field: str, source: Tree, path: str, lenient: bool) -> Errors:
    target, place = source.get("target") or {}, f"{path}.target"
    if field in _IDENTITY:
        yield from _IDENTITY[field](source, path)
    ref = source.get("describedObject") or {}
    if field == "object" and not lenient and (problem := version_problem(ref, core=True)):
        yield errors.invalid(f"{path}.describedObject.apiVersion", ref.get("apiVersion", ""), problem)
    if field not in ("resource", "containerResource"):
        yield from _IDENTIFIER(source, path)
    yield from _TARGET(target, place)
    amounts, none, both = _AMOUNTS[field]
    given = [name for name in amounts if target.get(name) is not None]
    if not given:
        yield errors.required(f"{place}.{amounts[-1]}", none)
    elif len(given) > 1 and both:
        yield errors.forbidden(f"{place}.{amounts[0]}", both)


def version_problem(ref: Tree, *, core: bool) -> str:
    """The error of the apiVersion of a reference, or empty. ``core``: whether it may have no group."""
    version = ref.get("apiVersion", "")
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    return "" if core or "/" in version and not version.startswith("/") else "apiVersion must specify API group"


def validate_metric(metric: Tree, path: str, *, lenient: bool) -> Errors:
    """Check a metric. ``lenient``: the old object has references with invalid apiVersions."""
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


def _defaults(doc: Tree) -> None:
    """Set the defaults of v2, or in v1 those of its fields."""
    spec = doc.setdefault("spec", {})
    fill.absent(spec, minReplicas=1)
    if doc.get("apiVersion") == "autoscaling/v1":
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        _scaling_rules(fill.made(behavior, "scaleUp"), 0, [("Pods", 4), ("Percent", 100)])
        _scaling_rules(fill.made(behavior, "scaleDown"), None, [("Percent", 100)])


def _scaling_rules(scaling: Tree, window_s: int | None, policies: list[tuple[str, int]]) -> None:
    if window_s is not None:
        fill.absent(scaling, stabilizationWindowSeconds=window_s)
    listed = [{"type": kind, "value": value, "periodSeconds": 15} for kind, value in policies]
    fill.absent(scaling, selectPolicy="Max", policies=listed)


def _reference(target: Tree) -> str:
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(doc: Tree, now: datetime) -> str:
    specs, states = (doc.get("spec") or {}).get("metrics"), (doc.get("status") or {}).get("currentMetrics") or ()
    if not specs:
        return NONE
    texts = []
    for index, spec in enumerate(specs):
        source = _FIELDS.get(spec["type"])
        state = states[index] if index < len(states) else {}
        texts.append("<unknown type>" if source is None else _metric(spec["type"], spec[source], state.get(source)))
    first = ", ".join(texts[:2])
    return f"{first} + {len(texts) - 2} more..." if len(texts) > 2 else first


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
    used = unknown if now is None else f"{now}%"
    return f"{named}{used}/{'<auto>' if wanted is None else f'{wanted}%'}"


KIND = Kind(
    "autoscaling",
    "horizontalpodautoscalers",
    stored_as={"v1": StoredAs(GVR("autoscaling", "v2", "horizontalpodautoscalers"), v1.to_v2, v1.from_v2)},
    defaults=_defaults,
    strategy=Strategy(
        new_status={"desiredReplicas": 0, "currentMetrics": None},
        check=_check,
        check_status=status_check(_STATUS),
    ),
    table=layout(
        NAME,
        Column(
            "Reference", "HorizontalPodAutoscalerSpec.scaleTargetRef", shown("spec.scaleTargetRef", "/", _reference)
        ),
        Column("Targets", "HorizontalPodAutoscalerSpec.metrics", _targets),
        Column("MinPods", "HorizontalPodAutoscalerSpec.minReplicas", shown("spec.minReplicas", UNSET, str)),
        Column("MaxPods", *of_field("HorizontalPodAutoscaler", "spec.maxReplicas", 0)),
        Column("Replicas", *of_field("HorizontalPodAutoscaler", "status.currentReplicas", 0)),
        AGE,
    ),
)
