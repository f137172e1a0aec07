"""Topology spread constraints: those that must hold filter, the others score.

Where a pod has none, its controller's pods are spread over nodes (and a little over zones), as upstream's default
constraints do; there the pods are found by the selectors of Services and owners, here by their common owner.

upstream: pkg/scheduler/framework/plugins/podtopologyspread
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm_cli.machinery.labels import Requirement, Selector
from kcm_cli.planning.node_affinity import fits
from kcm_cli.planning.tolerations import NO_EXECUTE, NO_SCHEDULE, untolerated
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, selector_of
from kcm_cli.sandbox.scheduler.state import ClusterState, NodeInfo
from kcm_cli.sandbox.scheduler.verdict import Filter, Refusal
from kcm_cli.sandbox.views import TopologySpreadConstraint

PLUGIN = "PodTopologySpread"
SKEWED = Refusal(PLUGIN, ("node(s) didn't match pod topology spread constraints",), resolvable=True)
NO_LABEL = Refusal(PLUGIN, ("node(s) didn't match pod topology spread constraints (missing required label)",))
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MAX_SCORE = 100
_REPELLING = (NO_SCHEDULE, NO_EXECUTE)
Scores = dict[str, int]


@dataclass(frozen=True, slots=True)
class _Constraint:
    max_skew: int
    key: str
    count: Callable[[NodeInfo], int]
    min_domains: int = 1
    matches_self: bool = True
    honors_affinity: bool = False
    honors_taints: bool = False

    def includes(self, info: PodInfo, node: NodeInfo) -> bool:
        """Whether the pods of this node are counted."""
        spec = info.pod.spec
        if self.honors_affinity and not fits(node.name, node.labels, spec.node_selector, spec.affinity):
            return False
        if not self.honors_taints:
            return True
        return untolerated(node.node.spec.taints, spec.tolerations, _REPELLING) is None


def spread_filter(info: PodInfo, state: ClusterState) -> Filter | None:
    """The constraints that must hold."""
    constraints = _constraints(info, "DoNotSchedule")
    if not constraints:
        return None
    counts = [_by_domain(info, state, constraints, constraint) for constraint in constraints]
    lowest = [
        min(found.values(), default=math.inf) if len(found) >= constraint.min_domains else 0
        for constraint, found in zip(constraints, counts, strict=True)
    ]

    def check(node: NodeInfo) -> Refusal | None:
        for constraint, found, least in zip(constraints, counts, lowest, strict=True):
            value = node.labels.get(constraint.key)
            if value is None:
                return NO_LABEL
            if found.get(value, 0) + constraint.matches_self - least > constraint.max_skew:
                return SKEWED
        return None

    return check


def spread_scores(info: PodInfo, state: ClusterState, feasible: Sequence[NodeInfo]) -> Scores | None:
    """Up to 100 for each feasible node by the constraints that should hold; None where there are none."""
    own = bool(info.pod.spec.topology_spread_constraints)
    constraints = _constraints(info, "ScheduleAnyway") if own else _by_owner(info)
    if not constraints:
        return None
    ignored = {n.name for n in feasible if own and not _labelled(n, constraints)}
    raw: dict[str, float] = {node.name: 0.0 for node in feasible if node.name not in ignored}
    for constraint in constraints:
        _add_scores(raw, info, state, feasible, constraints, constraint, own=own)
    return _normalized({name: round_half_up(score) for name, score in raw.items()}, ignored)


def _add_scores(
    raw: dict[str, float],
    info: PodInfo,
    state: ClusterState,
    feasible: Sequence[NodeInfo],
    constraints: Sequence[_Constraint],
    constraint: _Constraint,
    *,
    own: bool,
) -> None:
    key = constraint.key
    scored = [node for node in feasible if node.name in raw]
    domains = {node.labels[key] for node in scored if key in node.labels}
    if key == HOSTNAME:
        weight = math.log(len(scored) + 2)
        for node in scored:
            if key in node.labels:
                raw[node.name] += constraint.count(node) * weight + constraint.max_skew - 1
        return
    weight = math.log(len(domains) + 2)
    counts = dict.fromkeys(domains, 0)
    for node in state.all():
        value = node.labels.get(key)
        if value not in counts or (own and not _labelled(node, constraints)):
            continue
        if constraint.includes(info, node):
            counts[value] += constraint.count(node)
    for node in scored:
        if (value := node.labels.get(key)) is not None:
            raw[node.name] += counts[value] * weight + constraint.max_skew - 1


def _normalized(scores: Scores, ignored: set[str]) -> Scores:
    low, high = min(scores.values(), default=0), max(scores.values(), default=0)
    if high == 0:
        found = dict.fromkeys(scores, MAX_SCORE)
    else:
        found = {name: MAX_SCORE * (high + low - score) // high for name, score in scores.items()}
    return {**found, **dict.fromkeys(ignored, 0)}


def round_half_up(value: float) -> int:
    """As Go's math.Round does for what is not negative."""
    return math.floor(value + 0.5)


def _by_domain(
    info: PodInfo, state: ClusterState, constraints: Sequence[_Constraint], constraint: _Constraint
) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in state.all():
        if _labelled(node, constraints) and constraint.includes(info, node):
            value = node.labels[constraint.key]
            found[value] = found.get(value, 0) + constraint.count(node)
    return found


def _labelled(node: NodeInfo, constraints: Sequence[_Constraint]) -> bool:
    return all(constraint.key in node.labels for constraint in constraints)


def _constraints(info: PodInfo, action: str) -> list[_Constraint]:
    given = info.pod.spec.topology_spread_constraints
    return [_constraint(info, item) for item in given if item.when_unsatisfiable == action] if given else []


def _constraint(info: PodInfo, item: TopologySpreadConstraint) -> _Constraint:
    labels, namespace = info.pod.labels, info.pod.namespace
    selector = selector_of(item.label_selector)
    keyed = [Requirement(k, "in", (labels[k],)) for k in item.match_label_keys if k in labels]
    missing = [r for r in keyed if r not in selector.requirements]
    if missing and selector.selectable:
        selector = Selector((*selector.requirements, *missing))
    return _Constraint(
        item.max_skew,
        item.topology_key,
        lambda node: _count(node, selector, namespace),
        item.min_domains or 1,
        selector.matches(labels),
        item.node_affinity_policy != "Ignore",
        item.node_taints_policy == "Honor",
    )


def _count(node: NodeInfo, selector: Selector, namespace: str) -> int:
    if selector.empty:
        return 0
    count = 0
    for info in node.pods.values():
        meta = info.pod.metadata
        if meta.namespace == namespace and meta.deletion_timestamp is None and selector.matches(meta.labels or {}):
            count += 1
    return count


def _by_owner(info: PodInfo) -> list[_Constraint]:
    owner = info.owner
    if not owner:
        return []

    def count(node: NodeInfo) -> int:
        return node.owners.get(owner, 0)

    return [_Constraint(3, HOSTNAME, count, honors_affinity=True), _Constraint(5, ZONE, count, honors_affinity=True)]
