"""Cached counts of pods equal new ones."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import EQUALS, NOT_IN, Requirement, Selector
from kcm_cli.sandbox.scheduler import podindex
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podindex import Labelled, Matched
from kcm_cli.sandbox.scheduler.podinfo import relabelled
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.views import NODES
from tests.unit.sandbox.scheduler.build import node_doc, pod, state_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone", "namespaceSelector": {}}
AWAY = {"podAntiAffinity": {REQUIRED: [TERM]}}
NEAR = {"podAffinity": {REQUIRED: [TERM]}}
KIND = Labelled("default", Selector((Requirement("app", EQUALS, ("a",)),)))
OTHERS = Labelled("default", Selector((Requirement("app", NOT_IN, ("a",)),)))
ONE_POD = Labelled("default", Selector((*KIND.selector.requirements, Requirement("name", EQUALS, ("p",)))))
MATCHED = Matched(pod("x", affinity=AWAY).anti_affinity)
KINDS = (KIND, OTHERS, ONE_POD, MATCHED)

steps = st.one_of(
    st.tuples(
        st.just("place"),
        st.sampled_from("pqrs"),
        st.sampled_from("xyz"),
        st.sampled_from("ab"),
        st.sampled_from([None, AWAY, NEAR]),
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


def counted(state: ClusterState) -> tuple[list[dict], Counter]:
    pods = [(node.name, info) for node in state.all() for info in node.pods.values()]
    counts = [dict(Counter(n for n, info in pods if kind.has(info, state.namespaces))) for kind in KINDS]
    anti = Counter((term, name) for name, info in pods for term in info.anti_affinity)
    return counts, anti


def kept(state: ClusterState) -> tuple[list[dict], Counter]:
    anti: Counter = Counter()
    for term, counts in state.anti():
        for name, count in counts.items():
            anti[term, name] += count
    return [state.counts(kind) for kind in KINDS], anti


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
    state.namespaces = {"default": {"team": "a"}}
    assert (state.counts(kind), state.counts(KIND)) == ({"x": 1}, {"x": 1})
