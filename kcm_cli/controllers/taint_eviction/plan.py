"""When a pod has to leave a node with NoExecute taints.

upstream: pkg/controller/tainteviction/taint_eviction.go#processPodOnNode
"""

from collections.abc import Iterable, Sequence

from kcm_cli.api.core import Node, Taint, Toleration
from kcm_cli.planning.tolerations import NO_EXECUTE, tolerates


def executing(node: Node) -> tuple[Taint, ...]:
    """The taints that evict pods."""
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


def stays_s(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """Seconds for which a pod may stay: 0 if a taint is not tolerated, None for ever."""
    used: list[Toleration] = []
    for taint in taints:
        match = next((toleration for toleration in tolerations if tolerates(toleration, taint)), None)
        if match is None:
            return 0.0
        used.append(match)
    limits = [t.toleration_seconds for t in used if t.toleration_seconds is not None]
    return float(max(0, min(limits))) if limits else None
