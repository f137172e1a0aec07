"""Scores nodes by the images of the pod that they have: by size, and by the share of nodes with the image.

upstream: pkg/scheduler/framework/plugins/imagelocality
"""

from kcm_cli.sandbox.scheduler.compared import Compared
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.verdict import MAX_SCORE, Scores

_LEAST, _MOST_EACH = 23 << 20, 1000 << 20
"""Less than the first counts as nothing, more than the second of one container as that."""


def image_scores(info: PodInfo, compared: Compared) -> Scores | None:
    """Up to 100 for each feasible node; None if no node has any of the images."""
    state = compared.state
    spread = [(name, state.image_nodes[name] / len(state.nodes)) for name in info.images if state.image_nodes[name]]
    if not spread:
        return None
    sizes = [0] * len(compared.positions)
    for name, share in spread:
        here = compared.image_sizes(name)
        sizes = [size + int(more * share) for size, more in zip(sizes, here, strict=True)]
    most = _MOST_EACH * info.containers
    points = {size: MAX_SCORE * (min(max(size, _LEAST), most) - _LEAST) // (most - _LEAST) for size in set(sizes)}
    return Scores(sizes, points)
