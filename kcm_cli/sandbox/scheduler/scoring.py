"""Scores feasible nodes, with the weights and arithmetic of upstream's default plugins.

upstream: pkg/scheduler/framework/plugins, pkg/scheduler/apis/config/v1/default_plugins.go
"""

from collections.abc import Iterable, Sequence
from itertools import compress

from kcm_cli.api.core import NodeSelector
from kcm_cli.planning.node_affinity import selects
from kcm_cli.planning.tolerations import PREFER_NO_SCHEDULE, tolerates
from kcm_cli.sandbox.requests import CPU, MEMORY
from kcm_cli.sandbox.scheduler.compared import Compared
from kcm_cli.sandbox.scheduler.images import image_scores
from kcm_cli.sandbox.scheduler.interpod import affinity_scores
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.spread import spread_scores
from kcm_cli.sandbox.scheduler.verdict import MAX_SCORE, Scores, summed

TAINT_WEIGHT, AFFINITY_WEIGHT, SPREAD_WEIGHT, INTERPOD_WEIGHT, IMAGE_WEIGHT = 3, 2, 2, 2, 1
_COMPARED = (CPU, MEMORY)


Weighted = tuple[Scores | None, int]
"""What one plugin says (None: nothing), and how much that counts."""


def scores(info: PodInfo, compared: Compared) -> Sequence[Weighted]:
    """The scores of all plugins except those of volumes and devices."""
    return (
        (compared.scores(info.size, lambda node: _least_allocated(info, node) + _balanced(info, node)), 1),
        (_taint_scores(info, compared), TAINT_WEIGHT),
        (_node_affinity_scores(info, compared), AFFINITY_WEIGHT),
        (spread_scores(info, compared), SPREAD_WEIGHT),
        (affinity_scores(info, compared), INTERPOD_WEIGHT),
        (image_scores(info, compared), IMAGE_WEIGHT),
    )


def best(parts: Iterable[Weighted], compared: Compared) -> list[int]:
    """The positions of the nodes with the highest weighted sum, sorted by name. A part that is equal for all nodes is
    left out."""
    telling = [(part, weight) for part, weight in parts if part is not None and len(part.points) > 1]
    positions: Iterable[int] = compared.positions
    if telling:
        totals = summed(
            (part.values, {value: points * weight for value, points in part.points.items()}) for part, weight in telling
        )
        positions = compress(positions, map({max(totals)}.__contains__, totals))
    return sorted(positions, key=compared.state.columns.ranks.__getitem__)


def _least_allocated(info: PodInfo, node: NodeInfo) -> int:
    """Up to 100; higher the emptier the node will be."""
    score = count = 0
    for name in _COMPARED:
        capacity = node.allocatable.get(name, 0)
        if capacity:
            count += 1
            used = node.usual[name] + info.weighed[name]
            if used <= capacity:
                score += (capacity - used) * MAX_SCORE // capacity
    return score // count if count else 0


def _balanced(info: PodInfo, node: NodeInfo) -> int:
    """50 to 100, higher the more the pod balances the node's resource usage; 0 for a pod without requests."""
    asked = info.requests
    if not any(asked.get(name) for name in _COMPARED):
        return 0
    with_pod, without = _evenness(node, asked), _evenness(node, {})
    return MAX_SCORE // 2 + (MAX_SCORE // 2 + with_pod - without) // 2


def _evenness(node: NodeInfo, more: dict[str, int]) -> int:
    fractions = []
    for name in _COMPARED:
        capacity = node.allocatable.get(name, 0)
        if capacity:
            used = node.requested.get(name, 0) + more.get(name, 0)
            fractions.append(1.0 if used >= capacity else used / capacity)  # any pod may ask for 1e999
    deviation = abs(fractions[0] - fractions[1]) / 2 if len(fractions) == 2 else 0.0
    return int((1.0 - deviation) * MAX_SCORE)


def _taint_scores(info: PodInfo, compared: Compared) -> Scores | None:
    """Higher for fewer untolerated PreferNoSchedule taints."""
    if not compared.state.rather_not:
        return None
    tolerations = [t for t in info.pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]
    raw = [
        sum(not any(tolerates(item, taint) for item in tolerations) for taint in node.soft_taints)
        for node in compared.nodes
    ]
    return _scaled(raw, reverse=True) if any(raw) else None


def _node_affinity_scores(info: PodInfo, compared: Compared) -> Scores | None:
    affinity = info.pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or not affinity.node_affinity.preferred:
        return None
    terms = [(NodeSelector((term.preference,)), term.weight) for term in affinity.node_affinity.preferred]
    raw = [sum(weight for term, weight in terms if _prefers(term, node)) for node in compared.nodes]
    return _scaled(raw, reverse=False) if any(raw) else None


def _prefers(term: NodeSelector, node: NodeInfo) -> bool:
    inner = term.node_selector_terms[0]
    empty = not inner.match_expressions and not inner.match_fields
    return not empty and selects(term, node.name, node.labels)


def _scaled(raw: Sequence[int], *, reverse: bool) -> Scores:
    top = max(raw)
    scaled = {score: score * MAX_SCORE // top for score in set(raw)}
    return Scores(raw, {score: MAX_SCORE - points for score, points in scaled.items()} if reverse else scaled)
