"""Which pods nobody else will ever remove."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import NODES, PODS, Node, Pod
from kcm_cli.controllers.pod_garbage_collector import plan
from kcm_cli.machinery import codec
from kcm_cli.planning.nodes import OUT_OF_SERVICE


def pod(name: str, phase: str = "Running", *, age: int = 0, deleting: bool = False, **fields: Any) -> Pod:
    """A pod; ``age`` in hours before midnight."""
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": f"2026-01-01T{23 - age:02}:00:00Z"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    spec = {"nodeName": fields.pop("node", "n")}
    return PODS.decode(codec.encode({"metadata": metadata, "spec": spec, "status": {"phase": phase, **fields}}))


def node(name: str, ready: str | None = "False", taint: str | None = OUT_OF_SERVICE) -> Node:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    taints = [] if taint is None else [{"key": taint, "effect": "NoExecute"}]
    doc = {"metadata": {"name": name}, "spec": {"taints": taints}, "status": {"conditions": conditions}}
    return NODES.decode(codec.encode(doc))


def names(pods: list[Pod]) -> list[str]:
    return [pod.name for pod in pods]


@pytest.mark.parametrize(
    ("pods", "threshold", "expected"),
    [
        pytest.param([pod("a", "Failed"), pod("b", "Succeeded")], 0, [], id="switched off"),
        pytest.param([pod("a", "Failed"), pod("b", "Succeeded")], -1, [], id="negative"),
        pytest.param([pod("a", "Failed"), pod("b", "Succeeded")], 2, [], id="just enough"),
        pytest.param([pod("a", "Failed", age=1), pod("b", "Succeeded", age=2)], 1, ["b"], id="the oldest"),
        pytest.param([pod("b", "Failed", age=1), pod("a", "Failed", age=1)], 1, ["a"], id="by name if as old"),
        pytest.param([pod(p, p, age=9) for p in ("Pending", "Running", "Unknown")] + [pod("a", "Failed")], 1, [],
                     id="only those that have ended"),
        pytest.param([pod("a", "Failed", age=9), pod("b", "Failed", age=1, reason="Evicted")], 1, ["b"],
                     id="evicted ones first"),
        pytest.param([pod("a", "Failed", age=9), pod("b", "Succeeded", age=1, reason="Evicted")], 1, ["a"],
                     id="only failed ones are evicted"),
        pytest.param([pod("a", "", age=9), pod("b", "Failed")], 1, ["a"], id="no phase is none of the living"),
    ],
)  # fmt: skip
def test_terminated(pods: list[Pod], threshold: int, expected: list[str]) -> None:
    assert names(plan.terminated(pods, threshold)) == expected


@given(st.lists(st.tuples(st.sampled_from(["Running", "Failed", "Succeeded"]), st.integers(0, 9), st.booleans())),
       st.integers(1, 5))  # fmt: skip
def test_what_stays_is_the_threshold(states: list[tuple[str, int, bool]], threshold: int) -> None:
    pods = [
        pod(f"p{n}", phase, age=age, **({"reason": "Evicted"} if evicted else {}))
        for n, (phase, age, evicted) in enumerate(states)
    ]
    gone = plan.terminated(pods, threshold)
    done = [p for p in pods if p.status.phase != "Running"]
    assert len(gone) == max(0, len(done) - threshold)
    assert set(names(gone)) <= set(names(done))
    assert names(plan.terminated(list(reversed(pods)), threshold)) == names(gone)


@pytest.mark.parametrize(
    ("shown", "host", "expected"),
    [
        pytest.param(pod("p", deleting=True), node("n"), True, id="out of service"),
        pytest.param(pod("p"), node("n"), False, id="not terminating"),
        pytest.param(pod("p", deleting=True), node("n", "True"), False, id="the node is ready"),
        pytest.param(pod("p", deleting=True), node("n", "Unknown"), True, id="the node is unknown"),
        pytest.param(pod("p", deleting=True), node("n", None), True, id="the node says nothing"),
        pytest.param(pod("p", deleting=True), node("n", taint=None), False, id="not marked"),
        pytest.param(pod("p", deleting=True), node("n", taint="example.com/x"), False, id="marked otherwise"),
        pytest.param(pod("p", deleting=True), None, False, id="no such node"),
        pytest.param(pod("p", deleting=True, node=""), node("n"), False, id="no node"),
    ],
)
def test_out_of_service(shown: Pod, host: Node | None, expected: bool) -> None:
    found = plan.out_of_service([shown], lambda name: host)
    assert names(found) == (["p"] if expected else [])


def test_out_of_service_in_order() -> None:
    pods = [pod("b", deleting=True, age=1), pod("a", deleting=True, age=1), pod("c", deleting=True, age=5)]
    assert names(plan.out_of_service(pods, lambda name: node(name))) == ["c", "a", "b"]


def test_unscheduled() -> None:
    pods = [pod("a", deleting=True, node=""), pod("b", node=""), pod("c", deleting=True)]
    assert names(plan.unscheduled(pods)) == ["a"]
