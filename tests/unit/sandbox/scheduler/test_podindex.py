"""Cached counts of pods equal new ones."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import EQUALS, NOT_IN, Requirement, Selector
from kcm_cli.sandbox.scheduler import podindex
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podindex import Labelled, Matched, Namespaces
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, relabelled
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.views import NODES
from tests.unit.sandbox.scheduler.build import node_doc, pod, state_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone", "namespaceSelector": {}}
OWN_TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
OTHER_TERM = {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "zone", "namespaces": ["default", "other"]}
ANY_TERM = {"labelSelector": {}, "topologyKey": "zone"}
AWAY = {"podAntiAffinity": {REQUIRED: [TERM]}}
NEAR = {"podAffinity": {REQUIRED: [TERM]}}
AFFINITIES = [
    None,
    AWAY,
    NEAR,
    {"podAntiAffinity": {REQUIRED: [OWN_TERM, OTHER_TERM]}},
    {"podAntiAffinity": {REQUIRED: [ANY_TERM]}, "podAffinity": {REQUIRED: [OTHER_TERM]}},
]
KIND = Labelled("default", Selector((Requirement("app", EQUALS, ("a",)),)))
OTHERS = Labelled("default", Selector((Requirement("app", NOT_IN, ("a",)),)))
ONE_POD = Labelled("default", Selector((*KIND.selector.requirements, Requirement("name", EQUALS, ("p",)))))
MATCHED = Matched(pod("x", affinity=AWAY).anti_affinity)
OWN = Matched(pod("x", affinity={"podAffinity": {REQUIRED: [OWN_TERM, ANY_TERM]}}).affinity)
APART = Matched(pod("x", affinity={"podAffinity": {REQUIRED: [OWN_TERM, OTHER_TERM]}}).affinity)
KINDS = (KIND, OTHERS, ONE_POD, MATCHED, OWN, APART)
PROBES = [pod("probe", {"app": app}) for app in "ab"]

steps = st.one_of(
    st.tuples(
        st.just("place"),
        st.sampled_from("pqrs"),
        st.sampled_from("xyz"),
        st.sampled_from("ab"),
        st.sampled_from(AFFINITIES),
        st.booleans(),
    ),
    st.tuples(st.just("take"), st.sampled_from("pqrs")),
    st.tuples(st.just("relabel"), st.sampled_from("pqrs"), st.sampled_from("ab")),
    st.tuples(st.sampled_from(["node", "no node"]), st.sampled_from("xyz")),
)


def apply(state: ClusterState, step: tuple) -> None:
    match step:
        case ("place", name, node, app, affinity, leaving):
            metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if leaving else {}
            spec = {"affinity": affinity} if affinity else {}
            state.place(pod(name, {"app": app, "name": name}, metadata=metadata, **spec), node)
        case ("relabel", name, app):
            on = state.nodes.get(state.node_of(f"default/{name}") or "")
            if on is not None:
                info = on.pods[f"default/{name}"]
                state.place(relabelled(info, pod(name, {"app": app, "zone": "z"}).pod), on.name)
        case ("take", name):
            state.take_off(f"default/{name}")
        case ("node", name):
            state.set_node(NODES.decode(codec.encode(node_doc(name))))
        case (_, name):
            state.remove_node(name)


def counted(state: ClusterState) -> tuple[list[dict], list[Counter]]:
    pods = [(node.name, info) for node in state.all() for info in node.pods.values()]
    counts = [dict(Counter(n for n, info in pods if kind.has(info, state.namespaces))) for kind in KINDS]
    anti = Counter((term, name) for name, info in pods for term in info.anti_affinity)
    return counts, [Counter({key: anti[key] for key in anti if key[0].matches(each.pod, {})}) for each in PROBES]


def kept(state: ClusterState) -> tuple[list[dict], list[Counter]]:
    about: list[Counter] = []
    for probe in PROBES:
        anti: Counter = Counter()
        for term, counts in state.anti(probe):
            for name, count in counts.items() if term.matches(probe.pod, {}) else ():
                anti[term, name] += count
        about.append(anti)
    return [state.counts(kind) for kind in KINDS], about


@given(st.lists(steps, max_size=15), st.lists(steps, max_size=15))
def test_cached_counts_equal_new_ones(before: list[tuple], after: list[tuple]) -> None:
    """``before``: the changes before the kinds are counted first."""
    state = state_of(node_doc("x"), node_doc("y"))
    for change in before:
        apply(state, change)
    for change in [*after, *before]:
        assert kept(state) == counted(state)
        apply(state, change)
    assert kept(state) == counted(state)


@given(st.lists(steps, max_size=15), st.sampled_from("xy"))
def test_with_another_version_of_a_node(changes: list[tuple], name: str) -> None:
    state = state_of(node_doc("x"), node_doc("y"))
    for change in changes:
        apply(state, change)
    node: NodeInfo | None = state.nodes.get(name)
    if node is None:
        return
    before = kept(state)
    changed = node.copy()
    changed.add(pod("new", {"app": "a"}, affinity=AWAY))
    for key in list(changed.pods)[:1]:
        changed.remove(key)
    supposed = state.with_node(changed)
    assert kept(supposed) == counted(supposed)
    assert kept(state) == before


def test_the_least_recently_used_counts_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podindex, "MOST_KINDS", 2)
    state = state_of(node_doc("x"))
    kinds = [Labelled("default", Selector((Requirement("app", EQUALS, (app,)),))) for app in "abc"]
    kept = [state.counts(kind) for kind in kinds]
    state.place(pod("p", {"app": "a"}), "x")
    state.place(pod("q", {"app": "c"}), "x")
    assert kept == [{}, {}, {"x": 1}]
    assert [state.counts(kind) for kind in kinds] == [{"x": 1}, {}, {"x": 1}]


def test_namespaces_of_other_labels_change_what_terms_mean() -> None:
    state = state_of(node_doc("x"))
    term = {"labelSelector": {}, "topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "a"}}}
    kind = Matched(pod("x", affinity={"podAntiAffinity": {REQUIRED: [term]}}).anti_affinity)
    state.place(pod("p", {"app": "a"}), "x")
    assert (state.counts(kind), state.counts(KIND)) == ({}, {"x": 1})
    state.set_namespace("default", {"team": "a"})
    assert (state.counts(kind), state.counts(KIND)) == ({"x": 1}, {"x": 1})
    known = state.counts(kind)
    state.set_namespace("default", {"team": "a"})
    assert state.counts(kind) is known, "it has the same labels"
    state.forget_namespace("default")
    state.set_namespace("default", {"team": "b"})
    assert state.counts(kind) == {}


def test_a_pod_of_a_deleted_namespace_is_not_counted_for_ever() -> None:
    """The cache of pods shows it still when that of namespaces does not show the namespace any more."""
    term = {"labelSelector": {}, "topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "a"}}}
    kind = Matched(pod("x", affinity={"podAntiAffinity": {REQUIRED: [term]}}).anti_affinity)
    state = state_of(node_doc("x"))
    state.set_namespace("default", {"team": "a"})
    state.place(pod("p"), "x")
    assert state.counts(kind) == {"x": 1}
    state.forget_namespace("default")
    state.take_off("default/p")
    assert state.counts(kind) == {}
    assert state.namespaces == {}


@dataclass(frozen=True)
class Noting:
    """A kind that notes with which pods it is compared."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    seen: list[str] = field(default_factory=list, compare=False)

    def has(self, info: PodInfo, namespaces: Namespaces) -> bool:
        self.seen.append(info.pod.name)
        return all(info.pod.labels.get(key) == value for key, value in self.labels)


def test_a_new_kind_is_compared_with_the_pods_of_its_rarest_label() -> None:
    """For the first pod of an owner, all 15,000 pods of its namespace took 60 ms."""
    state = state_of(node_doc("x"))
    for number in range(20):
        state.place(pod(f"p{number}", {"app": "a", "of": str(number // 2)}), "x")
    state.take_off("default/p7")
    kind = Noting("default", (("app", "a"), ("of", "3")))
    assert state.counts(kind) == {"x": 1}
    assert kind.seen == ["p6"]


@given(st.lists(steps, max_size=20), st.integers(0, 2))
def test_whether_some_pod_has_a_lower_priority(changes: list[tuple], priority: int) -> None:
    state = state_of(node_doc("x"), node_doc("y"))
    for number, change in enumerate(changes):
        apply(state, change)
        state.place(pod(f"z{number}", priority=number % 3), "xyz"[number % 3])
    pods = [info for node in state.all() for info in node.pods.values()]
    assert state.has_below(priority) == any(info.priority < priority for info in pods)


@given(st.lists(steps, max_size=15), st.sampled_from("xy"))
def test_pods_by_domain(changes: list[tuple], name: str) -> None:
    """Also where a node has other pods than in reality."""
    zones = {"x": "1", "y": "1", "z": "2"}
    state = state_of(*(node_doc(node, {"zone": zone}) for node, zone in zones.items()))
    for change in changes:
        if change[0] not in ("node", "no node"):
            apply(state, change)
    changed = state.nodes[name].copy()
    changed.add(pod("new", {"app": "a"}))
    for key in list(changed.pods)[:1]:
        changed.remove(key)
    for one in (state, state.with_node(changed)):
        for kind in KINDS:
            expected: Counter = Counter()
            for node in one.all():
                expected[zones[node.name]] += sum(kind.has(info, one.namespaces) for info in node.pods.values())
            found = one.counts_by("zone", kind)
            assert {zone: found.get(zone, 0) for zone in "12"} == {zone: expected[zone] for zone in "12"}
        assert one.domains("zone") == {"1": 2, "2": 1}
        assert one.domains("rack") == {None: 3}
        pods = Counter(info.key for info in one.pods_of("default"))
        assert pods == Counter(key for node in one.all() for key in node.pods)
