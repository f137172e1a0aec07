"""Conditions of an autoscaler, set where they stand; and the texts of things that are shown in them.

upstream: pkg/controller/podautoscaler/horizontal.go#setConditionInList
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.planning.conditions import Conditions, find

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"


def put(conditions: Conditions, now: str, type_: str, status: str, told: tuple[str, str]) -> Conditions:
    """Set a condition with its reason and message; the time moves only with the status."""
    reason, message = told
    current = find(conditions, type_)
    if current is None:
        return (*conditions, Condition(type_, status, reason, message, now))
    since = current.last_transition_time if current.status == status else now
    new = msgspec.structs.replace(current, status=status, reason=reason, message=message, last_transition_time=since)
    return tuple(new if condition is current else condition for condition in conditions)


def selector_text(selector: LabelSelector | None) -> str:
    """A label selector as upstream's messages print it."""
    if selector is None:
        return "nil"
    labels = _map(selector.match_labels or {})
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{term.key},Operator:{term.operator},Values:[{' '.join(term.values)}],}},"
        for term in selector.match_expressions
    )
    return f"&LabelSelector{{MatchLabels:{labels},MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"


def _map(labels: Mapping[str, str]) -> str:
    return "map[string]string{" + "".join(f"{key}: {labels[key]}," for key in sorted(labels)) + "}"
