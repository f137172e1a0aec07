"""Decides when a pod has to be deleted from a node with NoExecute taints.

upstream: pkg/controller/tainteviction/taint_eviction.go#processPodOnNode
"""

from collections.abc import Iterable, Sequence

import msgspec

from kcm_cli.api.core import Node, Taint, Toleration
from kcm_cli.planning.tolerations import NO_EXECUTE, tolerates


def executing(node: Node) -> tuple[Taint, ...]:
    """The node's NoExecute taints."""
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


class Leave(msgspec.Struct, frozen=True):
    """The pod is to be deleted after ``after_s`` seconds. ``tolerated``: all taints are tolerated until then."""

    after_s: float
    tolerated: bool


def plan(taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparisons: bool) -> Leave | None:
    """When a pod has to be deleted; None if it may stay.

    comparisons: gate TaintTolerationComparisonOperators.
    """
    used: list[Toleration] = []
    for taint in taints:
        match = next(
            (toleration for toleration in tolerations if tolerates(toleration, taint, comparisons=comparisons)), None
        )
        if match is None:
            return Leave(0.0, tolerated=False)
        used.append(match)
    limits = [t.toleration_seconds for t in used if t.toleration_seconds is not None]
    return Leave(float(max(0, min(limits))), tolerated=True) if limits else None
