"""Affinity and anti-affinity between pods: what is required filters, what is preferred scores.

upstream: pkg/scheduler/framework/plugins/interpodaffinity
"""

from collections.abc import Iterable, Mapping, Sequence

from kcm_cli.sandbox.scheduler.podinfo import PodInfo, Term
from kcm_cli.sandbox.scheduler.spread import MAX_SCORE, Scores
from kcm_cli.sandbox.scheduler.state import NO_LABELS, ClusterState, NodeInfo
from kcm_cli.sandbox.scheduler.verdict import Filter, Refusal

PLUGIN = "InterPodAffinity"
NOT_NEAR = Refusal(PLUGIN, ("node(s) didn't match pod affinity rules",))
NOT_FAR = Refusal(PLUGIN, ("node(s) didn't match pod anti-affinity rules",), resolvable=True)
UNWANTED = Refusal(PLUGIN, ("node(s) didn't satisfy existing pods anti-affinity rules",), resolvable=True)
Domain = tuple[str, str]
"""A topology key and its value."""


def affinity_filter(info: PodInfo, state: ClusterState) -> Filter | None:
    """The terms that must hold: the pod's own, and the anti-affinity of the pods that are there."""
    repelled = _repelled(info, state)
    if not repelled and not info.affinity and not info.anti_affinity:
        return None
    near = _all_matched(info, state)
    far = _matched(info.anti_affinity, state)
    first = not near and _matches_all(info.affinity, info, state)

    def check(node: NodeInfo) -> Refusal | None:
        labels = node.labels
        if info.affinity and not _near(info.affinity, labels, near, first=first):
            return NOT_NEAR
        for term in info.anti_affinity:
            value = labels.get(term.topology_key)
            if value is not None and (term.topology_key, value) in far:
                return NOT_FAR
        for key, value in repelled:
            if labels.get(key) == value:
                return UNWANTED
        return None

    return check


def _near(terms: Iterable[Term], labels: Mapping[str, str], found: set[Domain], *, first: bool) -> bool:
    """``first``: no pod matches yet anywhere, and the pod itself would, so that it may be the first one."""
    there = True
    for term in terms:
        value = labels.get(term.topology_key)
        if value is None:
            return False
        there = there and (term.topology_key, value) in found
    return there or first


def _repelled(info: PodInfo, state: ClusterState) -> set[Domain]:
    """Where pods are that do not want this one near."""
    labels = state.labels_of_namespace(info.pod.namespace)
    found: set[Domain] = set()
    for node in state.all():
        for other in node.with_anti_affinity.values():
            for term in other.anti_affinity:
                value = node.labels.get(term.topology_key)
                if value is not None and term.matches(info.pod, labels):
                    found.add((term.topology_key, value))
    return found


def _all_matched(info: PodInfo, state: ClusterState) -> set[Domain]:
    """Where pods are that match all terms of the pod's affinity."""
    found: set[Domain] = set()
    if not info.affinity:
        return found
    for node in state.all():
        keys = [term.topology_key for term in info.affinity if term.topology_key in node.labels]
        if keys and any(_matches_all(info.affinity, other, state) for other in node.pods.values()):
            found.update((key, node.labels[key]) for key in keys)
    return found


def _matched(terms: Sequence[Term], state: ClusterState) -> set[Domain]:
    found: set[Domain] = set()
    for term in terms:
        for node in state.all():
            value = node.labels.get(term.topology_key)
            if value is None or (term.topology_key, value) in found:
                continue
            if any(_matches(term, other, state) for other in node.pods.values()):
                found.add((term.topology_key, value))
    return found


def _matches_all(terms: Sequence[Term], other: PodInfo, state: ClusterState) -> bool:
    return bool(terms) and all(_matches(term, other, state) for term in terms)


def _matches(term: Term, other: PodInfo, state: ClusterState) -> bool:
    namespace = other.pod.metadata.namespace
    return term.matches(other.pod, state.labels_of_namespace(namespace) if state.namespaces else NO_LABELS)


def affinity_scores(info: PodInfo, state: ClusterState, feasible: Sequence[NodeInfo]) -> Scores | None:
    """Up to 100 for each feasible node by what is preferred, here and by the pods that are there; or None."""
    wishes = bool(info.preferred or info.preferred_anti)
    found: dict[Domain, int] = {}
    for node in state.all():
        for other in (node.pods if wishes else node.with_affinity).values():
            for term, weight in _weighted(info, other, state):
                value = node.labels.get(term.topology_key)
                if value is not None:
                    domain = (term.topology_key, value)
                    found[domain] = found.get(domain, 0) + weight
    if not found:
        return None
    raw = {node.name: sum(w for (k, v), w in found.items() if node.labels.get(k) == v) for node in feasible}
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    if high == low:
        return dict.fromkeys(raw, 0)
    return {name: int(MAX_SCORE * ((score - low) / (high - low))) for name, score in raw.items()}


def _weighted(info: PodInfo, other: PodInfo, state: ClusterState) -> Iterable[tuple[Term, int]]:
    """The terms between two pods that match, in both directions, with their weights."""
    for terms, sign in ((info.preferred, 1), (info.preferred_anti, -1)):
        for term in terms:
            if _matches(term, other, state):
                yield term, sign * term.weight
    for terms, sign in ((other.preferred, 1), (other.preferred_anti, -1)):
        for term in terms:
            if _matches(term, info, state):
                yield term, sign * term.weight
    for term in other.affinity:  # who has to be near others is drawn to them, with a weight of 1
        if _matches(term, info, state):
            yield term, 1
