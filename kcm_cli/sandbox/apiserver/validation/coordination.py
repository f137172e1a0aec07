"""Leases, disruption budgets and revisions of workloads.

Source: pkg/apis/coordination/validation/validation.go, pkg/apis/policy/validation/validation.go,
pkg/apis/apps/validation/validation.go#ValidateControllerRevisionCreate.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, labels, metadata, numbers

_EVICTIONS = ("AlwaysAllow", "IfHealthyBudget")
_BUDGET_COUNTERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def validate_lease(doc: Tree) -> list[FieldError]:
    return metadata.validate_plain_meta(doc["metadata"], True, metadata.subdomain) + _lease(doc.get("spec") or {})


def validate_lease_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_plain_meta_update(new["metadata"], old["metadata"])
    return found + _lease(new.get("spec") or {})


def _lease(spec: Tree) -> list[FieldError]:
    found: list[FieldError] = []
    duration_s = spec.get("leaseDurationSeconds")
    if duration_s is not None and duration_s <= 0:
        found.append(errors.invalid("spec.leaseDurationSeconds", duration_s, errors.NOT_POSITIVE))
    found += numbers.non_negative(spec, ("leaseTransitions",), "spec")
    return found


def validate_budget(doc: Tree) -> list[FieldError]:
    return _budget(doc["spec"], lenient=False)


def validate_budget_update(new: Tree, old: Tree) -> list[FieldError]:
    return _budget(new["spec"], lenient=bool(labels.validate_selector(old["spec"].get("selector"), "")))


def _budget(spec: Tree, *, lenient: bool) -> list[FieldError]:
    low, high, selector = spec.get("minAvailable"), spec.get("maxUnavailable"), spec.get("selector")
    eviction = spec.get("unhealthyPodEvictionPolicy")
    found: list[FieldError] = []
    if low is not None and high is not None:
        shown = {
            "MinAvailable": low,
            "Selector": labels.shown(selector),
            "MaxUnavailable": high,
            "UnhealthyPodEvictionPolicy": eviction,
        }
        found.append(errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field, value in (("minAvailable", low), ("maxUnavailable", high)):
        if value is not None:
            found += numbers.count_or_percent(value, f"spec.{field}")
            found += numbers.at_most_100_percent(value, f"spec.{field}")
    found += labels.validate_selector(selector, "spec.selector", lenient_values=lenient)
    if eviction is not None and eviction not in _EVICTIONS:
        found.append(errors.not_supported("spec.unhealthyPodEvictionPolicy", eviction, _EVICTIONS))
    return found


def validate_budget_status(new: Tree, old: Tree) -> list[FieldError]:
    status = new.get("status") or {}
    found = conditions.validate_conditions(status.get("conditions") or [], "status.conditions")
    return found + numbers.non_negative(status, _BUDGET_COUNTERS, "status")


def validate_revision(doc: Tree) -> list[FieldError]:
    found = _revision(doc)
    data = doc.get("data")
    if data is None:
        found.append(errors.required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        found.append(errors.required("data", "data must be a valid JSON object"))
    return found


def _revision(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    revision = doc.get("revision", 0)
    return found if revision >= 0 else [*found, errors.invalid("revision", revision, errors.NEGATIVE)]


def validate_revision_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"]) + _revision(new)
    return found + errors.fixed("data", new.get("data"), old.get("data"))
