"""PodDisruptionBudget.

upstream: pkg/apis/policy/validation,
pkg/registry/policy/poddisruptionbudget/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Cell, Column, at, layout, number, shown
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, go_print, labels, numbers, rules


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec = doc["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown_spec = go_print.internal("policy.PodDisruptionBudgetSpec", spec)
        yield errors.invalid("spec", shown_spec, "minAvailable and maxUnavailable cannot be both set")
    yield from _AMOUNTS(spec, "spec")
    lenient = old is not None and any(labels.validate_selector(old["spec"].get("selector"), ""))
    yield from labels.validate_selector(spec.get("selector"), "spec.selector", lenient_values=lenient)
    yield from _EVICTION(spec, "spec")


_AMOUNTS = rules.fields(
    *(
        rules.optional(field, numbers.count_or_percent, numbers.at_most_100_percent)
        for field in ("minAvailable", "maxUnavailable")
    ),
)
_EVICTION = rules.fields_of("policy.v1.PodDisruptionBudgetSpec", rules.maybe_one_of("unhealthyPodEvictionPolicy"))
_STATUS = rules.fields(
    rules.optional("conditions", conditions.validate_conditions),
    *rules.counters("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
)


_NEW_COUNTERS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _amount(name: str) -> Cell:
    return shown(f"spec.{name}", "N/A", str)


KIND = Kind(
    "policy",
    "poddisruptionbudgets",
    strategy=Strategy(
        names=None,
        new_status=_NEW_COUNTERS,
        generation=True,
        needs_version_on_update=True,
        check=_check,
        check_status=lambda new, old: _STATUS(new.get("status") or {}, "status"),
    ),
    table=layout(
        NAME,
        Column("Min Available", "The minimum number of pods that must be available.", _amount("minAvailable")),
        Column("Max Unavailable", "The maximum number of pods that may be unavailable.", _amount("maxUnavailable")),
        number(
            "Allowed Disruptions",
            "Calculated number of pods that may be disrupted at this time.",
            at("status.disruptionsAllowed", 0),
        ),
        AGE,
    ),
)
