"""The pods that are deleted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import NODES, PODS, Node, Pod
from kcm_cli.controllers.pod_garbage_collector import plan
from kcm_cli.controllers.pod_garbage_collector.plan import Reason
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


def oldest(pods: list[Pod], count: int) -> list[str]:
    """The first ones, from two sorted runs."""
    half = len(pods) // 2
    runs = [sorted(pods[:half], key=plan.age), sorted(pods[half:], key=plan.age)]
    return [pod.name for pod in plan.oldest_first(runs, count)]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([pod("a", "Failed", age=1), pod("b", "Succeeded", age=2)], "b", id="the oldest"),
        pytest.param([pod("b", "Failed", age=1), pod("a", "Failed", age=1)], "a", id="by name if as old"),
        pytest.param([pod("a", "Failed", age=9), pod("b", "Failed", age=1, reason="Evicted")], "b",
                     id="evicted ones first"),
        pytest.param([pod("a", "Failed", age=9), pod("b", "Succeeded", age=1, reason="Evicted")], "a",
                     id="only failed ones are evicted"),
    ],
)  # fmt: skip
def test_order_of_deletion(pods: list[Pod], expected: str) -> None:
    assert oldest(pods, 1) == [expected]
    assert oldest(pods, 0) == oldest(pods, -1) == []


@pytest.mark.parametrize(
    ("phase", "metadata", "held"),
    [
        pytest.param("Failed", {}, True, id="failed"),
        pytest.param("Succeeded", {}, True, id="succeeded"),
        pytest.param("Running", {}, False, id="is to be marked as failed yet"),
        pytest.param("Failed", {"finalizers": None}, False, id="nothing keeps it"),
        pytest.param("Failed", {"deletionGracePeriodSeconds": 30}, False, id="has a grace period"),
        pytest.param("Failed", {"deletionTimestamp": None}, False, id="was not deleted"),
    ],
)
def test_pods_that_only_finalizers_keep(phase: str, metadata: dict[str, Any], held: bool) -> None:
    deleted = {"deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["a.b/c"]}
    doc = {"metadata": {"name": "p", **deleted, **metadata}, "spec": {}, "status": {"phase": phase}}
    found = PODS.decode(codec.encode(doc))
    assert plan.is_held(found) is held
    if held:
        assert plan.plan(found, lambda name: None) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", "Failed", "Succeeded", ""])
def test_finished_pods(phase: str) -> None:
    assert plan.is_terminated(pod("p", phase)) is (phase in ("Failed", "Succeeded", ""))


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans())), st.integers(0, 5))
def test_the_order_does_not_depend_on_the_input_order(states: list[tuple[int, bool]], count: int) -> None:
    pods = [
        pod(f"p{n}", "Failed", age=age, **({"reason": "Evicted"} if evicted else {}))
        for n, (age, evicted) in enumerate(states)
    ]
    expected = [one.name for one in sorted(pods, key=plan.age)][:count]
    assert oldest(pods, count) == oldest(list(reversed(pods)), count) == expected


@pytest.mark.parametrize(
    ("shown", "host", "expected"),
    [
        pytest.param(pod("p", deleting=True), node("n"), True, id="out of service"),
        pytest.param(pod("p"), node("n"), False, id="not terminating"),
        pytest.param(pod("p", deleting=True), node("n", "True"), False, id="the node is ready"),
        pytest.param(pod("p", deleting=True), node("n", "Unknown"), True, id="the node is unknown"),
        pytest.param(pod("p", deleting=True), node("n", None), True, id="the node has no conditions"),
        pytest.param(pod("p", deleting=True), node("n", taint=None), False, id="not marked"),
        pytest.param(pod("p", deleting=True), node("n", taint="example.com/x"), False, id="marked otherwise"),
        pytest.param(pod("p", deleting=True), None, False, id="no such node"),
        pytest.param(pod("p", deleting=True, node=""), node("n"), False, id="no node"),
    ],
)
def test_out_of_service(shown: Pod, host: Node | None, expected: bool) -> None:
    assert (plan.plan(shown, lambda name: host) is Reason.OUT_OF_SERVICE) is expected


def test_unscheduled() -> None:
    pods = [pod("a", deleting=True, node=""), pod("b", node=""), pod("c", deleting=True)]
    assert [one.name for one in pods if plan.plan(one, lambda name: None) is Reason.UNSCHEDULED] == ["a"]


@pytest.mark.parametrize(
    ("phase", "deleting", "expected"),
    [
        ("Running", False, ()),
        ("Unknown", False, ()),
        ("Succeeded", False, (plan.ENDED,)),
        ("", False, (plan.ENDED,)),
        ("Running", True, (plan.LEAVING,)),
        ("Failed", True, (plan.ENDED, plan.LEAVING)),
    ],
)
def test_only_pods_that_can_be_deleted_are_examined(phase: str, deleting: bool, expected: tuple[str, ...]) -> None:
    assert plan.phase_index(pod("p", phase, deleting=deleting)) == expected
