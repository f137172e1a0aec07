"""The conditions of an autoscaler, and the texts of things that are shown in them."""

from collections.abc import Mapping

from kcm_cli.machinery.labels import LabelSelector

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"


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
