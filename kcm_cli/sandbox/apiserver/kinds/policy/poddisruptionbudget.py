"""PodDisruptionBudget.

Source: pkg/apis/policy/validation,
pkg/registry/policy/poddisruptionbudget/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, number
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, labels, numbers

_EVICTIONS = ("AlwaysAllow", "IfHealthyBudget")
_BUDGET_COUNTERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def validate_budget(doc: Tree) -> Errors:
    return _budget(doc["spec"], lenient=False)


def validate_budget_update(new: Tree, old: Tree) -> Errors:
    return _budget(new["spec"], lenient=any(labels.validate_selector(old["spec"].get("selector"), "")))


def _budget(spec: Tree, *, lenient: bool) -> Errors:
    low, high, selector = spec.get("minAvailable"), spec.get("maxUnavailable"), spec.get("selector")
    eviction = spec.get("unhealthyPodEvictionPolicy")
    if low is not None and high is not None:
        shown = {
            "MinAvailable": low,
            "Selector": labels.shown(selector),
            "MaxUnavailable": high,
            "UnhealthyPodEvictionPolicy": eviction,
        }
        yield errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for field, value in (("minAvailable", low), ("maxUnavailable", high)):
        if value is not None:
            yield from numbers.count_or_percent(value, f"spec.{field}")
            yield from numbers.at_most_100_percent(value, f"spec.{field}")
    yield from labels.validate_selector(selector, "spec.selector", lenient_values=lenient)
    if eviction is not None and eviction not in _EVICTIONS:
        yield errors.not_supported("spec.unhealthyPodEvictionPolicy", eviction, _EVICTIONS)


def validate_budget_status(new: Tree, old: Tree) -> Errors:
    status = new.get("status") or {}
    yield from conditions.validate_conditions(status.get("conditions") or [], "status.conditions")
    yield from numbers.non_negative(status, _BUDGET_COUNTERS, "status")


_NEW_COUNTERS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        doc["metadata"]["name"],
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        status.get("disruptionsAllowed", 0),
        created(doc, now),
    ]


KIND = Kind(
    "policy",
    "poddisruptionbudgets",
    strategy=Strategy(
        on_create=parts.new_with_status(_NEW_COUNTERS, generation=True),
        on_update=parts.spec_update,
        on_status=parts.status_update,
        needs_version_on_update=True,
        check_create=validate_budget,
        check_update=validate_budget_update,
        check_status=validate_budget_status,
    ),
    table=Layout(
        (
            NAME,
            Column("Min Available", "The minimum number of pods that must be available."),
            Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
            number("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
            AGE,
        ),
        _cells,
    ),
)
