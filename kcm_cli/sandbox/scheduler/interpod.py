"""Pod affinity and anti-affinity: required terms filter, preferred terms score.

upstream: pkg/scheduler/framework/plugins/interpodaffinity
"""

from collections.abc import Iterable, Mapping

from kcm_cli.sandbox.scheduler.compared import Compared
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podindex import Counts, Matched, matches_all
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, Term
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.verdict import MAX_SCORE, Filter, Refusal, Scores

PLUGIN = "InterPodAffinity"
NOT_NEAR = Refusal(PLUGIN, ("node(s) didn't match pod affinity rules",))
NOT_FAR = Refusal(PLUGIN, ("node(s) didn't match pod anti-affinity rules",), resolvable=True)
UNWANTED = Refusal(PLUGIN, ("node(s) didn't satisfy existing pods anti-affinity rules",), resolvable=True)
Domains = dict[str, dict[str, int]]
"""By topology key and value: how many pods, or what they weigh."""


def affinity_filter(info: PodInfo, state: ClusterState) -> Filter | None:
    """The filter for required terms: the pod's own, and the anti-affinity of assigned pods."""
    repelled = _repelled(info, state)
    if not repelled and not info.affinity and not info.anti_affinity:
        return None
    near = _near_all(info, state)
    far: Domains = {}
    for term in info.anti_affinity:
        _add(far, term.topology_key, state.counts(Matched((term,))), state)
    first = not near and matches_all(info.affinity, info, state.namespaces)

    def check(node: NodeInfo) -> Refusal | None:
        labels = node.labels
        if info.affinity and not _near(info.affinity, labels, near, first=first):
            return NOT_NEAR
        if _inside(far, labels):
            return NOT_FAR
        return UNWANTED if _inside(repelled, labels) else None

    return check


def _near(terms: Iterable[Term], labels: Mapping[str, str], found: Domains, *, first: bool) -> bool:
    """Whether all affinity terms are met. ``first``: no pod matches anywhere, and the pod matches its own terms."""
    there = True
    for term in terms:
        value = labels.get(term.topology_key)
        if value is None:
            return False
        there = there and value in found.get(term.topology_key, ())
    return there or first


def _inside(domains: Domains, labels: Mapping[str, str]) -> bool:
    return any(labels.get(key) in values for key, values in domains.items())


def _repelled(info: PodInfo, state: ClusterState) -> Domains:
    """The domains of pods whose anti-affinity rejects this pod."""
    labels = state.labels_of_namespace(info.pod.namespace)
    found: Domains = {}
    for term, counts in state.anti(info):
        if term.matches(info.pod, labels):
            _add(found, term.topology_key, counts, state)
    return found


def _near_all(info: PodInfo, state: ClusterState) -> Domains:
    """The domains of pods that match all terms of the pod's affinity."""
    found: Domains = {}
    if info.affinity:
        counts = state.counts(Matched(info.affinity))
        for key in {term.topology_key for term in info.affinity}:
            _add(found, key, counts, state)
    return found


def _add(domains: Domains, key: str, counts: Counts, state: ClusterState, weight: int = 1) -> None:
    """Add the weighted number of pods to each domain of a topology key."""
    values: dict[str, int] = {}
    for name, count in counts.items():
        value = state.nodes[name].labels.get(key)
        if value is not None:
            values[value] = values.get(value, 0) + weight * count
    if values:
        known = domains.setdefault(key, {})
        for value, weighs in values.items():
            known[value] = known.get(value, 0) + weighs


def affinity_scores(info: PodInfo, compared: Compared) -> Scores | None:
    """Up to 100 for each feasible node by preferred terms, of this pod and of assigned pods; None if there are none."""
    found = _weights(info, compared.state)
    if not found:
        return None
    raw = [_weight_of(node.labels, found) for node in compared.nodes]
    low, high = min(raw), max(raw)
    if high == low:
        return None
    return Scores(raw, {score: int(MAX_SCORE * ((score - low) / (high - low))) for score in set(raw)})


def _weights(info: PodInfo, state: ClusterState) -> Domains:
    """The weights of domains by the pod's preferences, and by those of assigned pods."""
    found: Domains = {}
    for terms, sign in ((info.preferred, 1), (info.preferred_anti, -1)):
        for term in terms:
            _add(found, term.topology_key, state.counts(Matched((term,))), state, sign * term.weight)
    labels = state.labels_of_namespace(info.pod.namespace)
    for term, weight, counts in state.drawn(info):
        if term.matches(info.pod, labels):
            _add(found, term.topology_key, counts, state, weight)
    return found


def _weight_of(labels: Mapping[str, str], domains: Domains) -> int:
    return sum(values.get(labels.get(key, ""), 0) for key, values in domains.items() if key in labels)
