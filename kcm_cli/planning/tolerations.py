"""Which taints of a node a pod tolerates.

upstream: staging/src/k8s.io/api/core/v1/toleration.go, component-helpers/scheduling/corev1/helpers.go
"""

import re
from collections.abc import Iterable

from kcm_cli.api.core import Taint, Toleration
from kcm_cli.machinery.integers import parse_int64

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

_decimal = re.compile(r"0|-?[1-9][0-9]*").fullmatch


def tolerates(toleration: Toleration, taint: Taint, *, comparisons: bool = False) -> bool:
    """Whether this toleration matches this taint. ``comparisons``: gate TaintTolerationComparisonOperators."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparisons:
            return _compares(toleration, taint)
    return False


def untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    effects: Iterable[str],
    *,
    comparisons: bool = False,
) -> Taint | None:
    """The first taint with one of these effects that no toleration matches."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, comparisons=comparisons) for toleration in tolerations
        ):
            return taint
    return None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    bound, value = _integer(toleration.value), _integer(taint.value)
    if bound is None or value is None:
        return False
    return value < bound if toleration.operator == "Lt" else value > bound


def _integer(text: str) -> int | None:
    """A decimal int64 without a plus sign or leading zeros."""
    return parse_int64(text) if _decimal(text) else None
