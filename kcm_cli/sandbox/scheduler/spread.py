"""Topology spread constraints: DoNotSchedule filters, ScheduleAnyway scores.

For pods without constraints, upstream's default ones apply: the pods that their Services and controller select are
spread over nodes and, with less weight, over zones.

upstream: pkg/scheduler/framework/plugins/podtopologyspread
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from kcm_cli.api.well_known import HOSTNAME, ZONE
from kcm_cli.machinery.labels import NOTHING, Requirement, Selector
from kcm_cli.planning.node_affinity import fits, required
from kcm_cli.planning.tolerations import NO_EXECUTE, NO_SCHEDULE, untolerated
from kcm_cli.sandbox.scheduler.compared import Compared
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podindex import Labelled
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, selector_of
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.verdict import MAX_SCORE, Filter, Refusal, Scores, summed
from kcm_cli.sandbox.views import TopologySpreadConstraint

K = TypeVar("K")

PLUGIN = "PodTopologySpread"
SKEWED = Refusal(PLUGIN, ("node(s) didn't match pod topology spread constraints",), resolvable=True)
NO_LABEL = Refusal(PLUGIN, ("node(s) didn't match pod topology spread constraints (missing required label)",))
_DEFAULTS = ((3, HOSTNAME), (5, ZONE))
"""The skew that is let pass by default, and over what pods are spread."""
_REPELLING = (NO_SCHEDULE, NO_EXECUTE)


class _Constraint(msgspec.Struct, frozen=True):
    """A constraint. ``pods``: the pods that count."""

    max_skew: int
    key: str
    pods: Labelled
    min_domains: int = 1
    matches_self: bool = True
    honors_affinity: bool = False
    honors_taints: bool = False

    @property
    def picky(self) -> bool:
        """Whether the pods of some nodes do not count."""
        return self.honors_affinity or self.honors_taints

    def includes(self, info: PodInfo, node: NodeInfo) -> bool:
        """Whether the pods of this node count."""
        spec = info.pod.spec
        if self.honors_affinity and not fits(node.name, node.labels, spec.node_selector, spec.affinity):
            return False
        if not self.honors_taints or not node.node.spec.taints:
            return True
        return untolerated(node.node.spec.taints, spec.tolerations, _REPELLING) is None


def spread_filter(info: PodInfo, state: ClusterState) -> Filter | None:
    """The filter for DoNotSchedule constraints."""
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


def spread_scores(info: PodInfo, compared: Compared) -> Scores | None:
    """Up to 100 for each node by ScheduleAnyway constraints; None if there are none."""
    own = bool(info.pod.spec.topology_spread_constraints)
    constraints = _constraints(info, "ScheduleAnyway") if own else _default(info, compared.state)
    if not constraints:
        return None
    domains = {constraint.key: compared.labels(constraint.key) for constraint in constraints}
    if not own or all(map(all, domains.values())) or not any(None in found for found in domains.values()):
        return _scores(info, compared, constraints, domains, own=own)
    labelled = list(map(all, zip(*([value is not None for value in found] for found in domains.values()), strict=True)))
    scored = Compared(compared.state, [p for p, has in zip(compared.positions, labelled, strict=True) if has])
    domains = {key: scored.labels(key) for key in domains}
    found = _scores(info, scored, constraints, domains, own=own)
    values = iter(found.values)
    return Scores([next(values) if has else None for has in labelled], {**found.points, None: 0})


def _scores(
    info: PodInfo,
    compared: Compared,
    constraints: Sequence[_Constraint],
    domains: Mapping[str, Sequence[str | None]],
    *,
    own: bool,
) -> Scores:
    required = constraints if own else ()
    points = [_points(info, compared, required, constraint, domains[constraint.key]) for constraint in constraints]
    sums = summed(points)
    return Scores(sums, _normalized({value: round_half_up(value) for value in set(sums)}))


def _points(
    info: PodInfo,
    compared: Compared,
    required: Sequence[_Constraint],
    constraint: _Constraint,
    domains: Sequence[str | None],
) -> tuple[Sequence[object], Mapping[Any, float]]:
    """(the value of each node for a constraint, the points of each value). The value is its number of pods or its
    domain (None without one)."""
    key, kind, allowed = constraint.key, constraint.pods, constraint.max_skew - 1
    if key == HOSTNAME:
        here: Sequence[int | None] = compared.counts(kind)
        if not all(domains) and None in domains:
            here = [count if domain is not None else None for count, domain in zip(here, domains, strict=True)]
        weight = math.log(len(here) + 2)
        return here, {count: count * weight + allowed if count is not None else 0.0 for count in set(here)}
    distinct = set(domains)
    pods: Mapping[str | None, int]
    if required or constraint.picky:
        pods = _by_counted(info, compared.state, required, constraint)
    else:
        pods = compared.counts_by(key, kind)
    weight = math.log(len({domain or "" for domain in distinct}) + 2)
    return domains, {
        domain: pods.get(domain, 0) * weight + allowed if domain is not None else 0.0 for domain in distinct
    }


def _by_counted(
    info: PodInfo, state: ClusterState, required: Sequence[_Constraint], constraint: _Constraint
) -> dict[str | None, int]:
    """The number of pods in each domain, on nodes that count."""
    found: dict[str | None, int] = {}
    for name, count in state.counts(constraint.pods).items():
        node = state.nodes[name]
        if _labelled(node, required) and constraint.includes(info, node):
            domain = node.labels.get(constraint.key)
            found[domain] = found.get(domain, 0) + count
    return found


def _normalized(scores: Mapping[K, int]) -> dict[K, int]:
    low, high = min(scores.values(), default=0), max(scores.values(), default=0)
    if high == 0:
        return dict.fromkeys(scores, MAX_SCORE)
    return {case: MAX_SCORE * (high + low - score) // high for case, score in scores.items()}


def round_half_up(value: float) -> int:
    """Go's math.Round for non-negative numbers."""
    return math.floor(value + 0.5)


def _by_domain(
    info: PodInfo, state: ClusterState, constraints: Sequence[_Constraint], constraint: _Constraint
) -> dict[str, int]:
    """The number of pods in each domain of the nodes that count, also where it is 0."""
    if not constraint.picky and not any(None in state.domains(each.key) for each in constraints):
        sums = state.counts_by(constraint.key, constraint.pods)
        return {value: sums.get(value, 0) for value in state.domains(constraint.key) if value is not None}
    found: dict[str, int] = {}
    counts = state.counts(constraint.pods)
    for node in state.all():
        if _labelled(node, constraints) and constraint.includes(info, node):
            value = node.labels[constraint.key]
            found[value] = found.get(value, 0) + counts.get(node.name, 0)
    return found


def _labelled(node: NodeInfo, constraints: Sequence[_Constraint]) -> bool:
    return all(constraint.key in node.labels for constraint in constraints)


def _constraints(info: PodInfo, action: str) -> list[_Constraint]:
    given = info.pod.spec.topology_spread_constraints
    return [_constraint(info, item) for item in given if item.when_unsatisfiable == action]


def _constraint(info: PodInfo, item: TopologySpreadConstraint) -> _Constraint:
    labels = info.pod.labels
    selector = selector_of(item.label_selector)
    keyed = [Requirement(k, "in", (labels[k],)) for k in item.match_label_keys if k in labels]
    missing = [r for r in keyed if r not in selector.requirements]
    if missing and selector.selectable:
        selector = Selector((*selector.requirements, *missing))
    return _Constraint(
        item.max_skew,
        item.topology_key,
        _alike(info, selector),
        item.min_domains or 1,
        selector.matches(labels),
        item.node_affinity_policy != "Ignore" and _asks_for_nodes(info),
        item.node_taints_policy == "Honor",
    )


def _default(info: PodInfo, state: ClusterState) -> Sequence[_Constraint]:
    selector = state.selector_for(info.pod)
    if selector.empty:
        return ()
    return _spread_over(Labelled(info.pod.namespace, selector), honors_affinity=_asks_for_nodes(info))


@lru_cache(256)
def _spread_over(pods: Labelled, *, honors_affinity: bool) -> Sequence[_Constraint]:
    return [_Constraint(skew, key, pods, honors_affinity=honors_affinity) for skew, key in _DEFAULTS]


def _alike(info: PodInfo, selector: Selector) -> Labelled:
    """The pods that a selector matches; an empty selector matches none."""
    return Labelled(info.pod.namespace, NOTHING if selector.empty else selector)


def _asks_for_nodes(info: PodInfo) -> bool:
    spec = info.pod.spec
    return bool(spec.node_selector) or required(spec.affinity) is not None
