"""Nodes that have a pod's images already are better: by the images' size, and the more nodes have them.

upstream: pkg/scheduler/framework/plugins/imagelocality
"""

from collections.abc import Sequence

from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.spread import MAX_SCORE, Scores
from kcm_cli.sandbox.scheduler.state import ClusterState, NodeInfo

_LEAST, _MOST_EACH = 23 << 20, 1000 << 20
"""Less than the first counts as nothing, more than the second of one container as that."""


def image_scores(info: PodInfo, state: ClusterState, feasible: Sequence[NodeInfo]) -> Scores | None:
    """Up to 100 for each feasible node; None where no node has any of the images."""
    spread = [(name, state.image_nodes[name] / len(state.nodes)) for name in info.images if state.image_nodes[name]]
    if not spread:
        return None
    most = _MOST_EACH * info.containers
    found: Scores = {}
    for node in feasible:
        size = sum(int(node.images[name] * share) for name, share in spread if name in node.images)
        found[node.name] = MAX_SCORE * (min(max(size, _LEAST), most) - _LEAST) // (most - _LEAST)
    return found
