"""HorizontalPodAutoscalers, in the form of autoscaling/v2.

Source: pkg/apis/autoscaling/validation/validation.go.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata, numbers, quantities
from kcm_cli.sandbox.apiserver.validation.autoscaler_metrics import validate_metric, validate_reference, version_problem

_WINDOW_MAX_S, _PERIOD_MAX_S = 3600, 1800
_SELECTS = ("Disabled", "Max", "Min")
_POLICIES = ("Percent", "Pods")
_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"


def validate_autoscaler(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + _spec(doc["spec"], None)


def validate_autoscaler_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _spec(new["spec"], old["spec"])


def validate_autoscaler_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    counters = ("currentReplicas", "desiredReplicas")
    return found + numbers.non_negative(new.get("status") or {}, counters, "status")


def _spec(spec: Tree, known: Tree | None) -> list[FieldError]:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    least = 0 if known is not None and known.get("minReplicas") == 0 else 1
    found: list[FieldError] = []
    if low is not None and low < least:
        detail = f"must be greater than or equal to {least}"
        found.append(errors.invalid("spec.minReplicas", low, detail))
    if high == 0:
        found.append(errors.required("spec.maxReplicas", "must be set and greater than 0"))
    elif high < 0:
        found.append(errors.invalid("spec.maxReplicas", high, "must be greater than or equal to 1"))
    if low is not None and high < low:
        detail = "must be greater than or equal to `minReplicas`"
        found.append(errors.invalid("spec.maxReplicas", high, detail))
    found += _target(spec.get("scaleTargetRef") or {}, (known or {}).get("scaleTargetRef"))
    found += _metrics(spec.get("metrics") or [], low, (known or {}).get("metrics") or [])
    behavior = spec.get("behavior") or {}
    for field in ("scaleUp", "scaleDown"):
        rules = behavior.get(field)
        if rules is not None:
            found += _rules(rules, f"spec.behavior.{field}")
    return found


def _target(ref: Tree, known: Tree | None) -> list[FieldError]:
    found = validate_reference(ref, "spec.scaleTargetRef")
    if known is not None and all(ref.get(field) == known.get(field) for field in ("apiVersion", "kind")):
        return found
    if problem := version_problem(ref, core=ref.get("kind") == "ReplicationController"):
        found.append(errors.invalid("spec.scaleTargetRef.apiVersion", ref.get("apiVersion", ""), problem))
    return found


def _metrics(metrics: list[Tree], low: int | None, known: list[Tree]) -> list[FieldError]:
    lenient = any(
        item.get("type") == "Object"
        and item.get("object") is not None
        and version_problem(item["object"].get("describedObject") or {}, core=True)
        for item in known
    )
    found: list[FieldError] = []
    for index, metric in enumerate(metrics):
        found += validate_metric(metric, f"spec.metrics[{index}]", lenient=lenient)
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        found.append(errors.forbidden("spec.metrics", _ZERO))
    return found


def _rules(rules: Tree, path: str) -> list[FieldError]:
    window_s, select, tolerance = (
        rules.get(field) for field in ("stabilizationWindowSeconds", "selectPolicy", "tolerance")
    )
    found: list[FieldError] = []
    if window_s is not None and not 0 <= window_s <= _WINDOW_MAX_S:
        high = f"must be less than or equal to {_WINDOW_MAX_S}"
        detail = "must be greater than or equal to zero" if window_s < 0 else high
        found.append(errors.invalid(f"{path}.stabilizationWindowSeconds", window_s, detail))
    if select is not None and select not in _SELECTS:
        found.append(errors.not_supported(f"{path}.selectPolicy", select, _SELECTS))
    policies = rules.get("policies") or ()
    if not policies:
        found.append(errors.required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        found += _policy(policy, f"{path}.policies[{index}]")
    return found if tolerance is None else found + quantities.non_negative(tolerance, f"{path}.tolerance")


def _policy(policy: Tree, path: str) -> list[FieldError]:
    kind, period_s = policy.get("type", ""), policy.get("periodSeconds", 0)
    found: list[FieldError] = []
    if kind not in _POLICIES:
        found.append(errors.not_supported(f"{path}.type", kind, _POLICIES))
    for field in ("value", "periodSeconds"):
        if policy.get(field, 0) <= 0:
            found.append(errors.invalid(f"{path}.{field}", policy.get(field, 0), quantities.NOT_POSITIVE))
    if period_s > _PERIOD_MAX_S:
        detail = f"must be less than or equal to {_PERIOD_MAX_S}"
        found.append(errors.invalid(f"{path}.periodSeconds", period_s, detail))
    return found
