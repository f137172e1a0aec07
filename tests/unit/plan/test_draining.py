"""Drains, as kubectl makes them."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.plan import Drain, Options, plan
from kcm_cli.plan.answer import Object
from kcm_cli.plan.draining import Draining
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.views import PODS, SimulatedPod
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment, stateful_set, template
from tests.unit.plan.clusters import budget, crowded, settled, snapshot_of

SCRATCH = {"name": "scratch", "emptyDir": {}}


def node_of(snapshot: Snapshot, name: str) -> str:
    (doc,) = [item.doc for item in snapshot.items(PODS.gvr) if item.name == name]
    return str(doc["spec"]["nodeName"])  # type: ignore[index]


def test_all_nodes_are_cordoned_before_the_first_is_emptied() -> None:
    snapshot = settled()
    held = node_of(snapshot, "db-0")
    others = sorted({"node-1", "node-2", "node-3"} - {held})
    answer = plan(snapshot, [Drain(held), Drain(others[0])], Options(600))
    cordoned = [one for one in answer.timeline if one.detail == "cordoned"]
    assert [one.about.name for one in cordoned] == [held, others[0]]
    assert all(one.at_s < 1 for one in cordoned)
    problems = {(one.kind, str(one.about)) for one in answer.problems}
    assert problems >= {("pdb", f"Pod {NAMESPACE}/db-0"), ("drain", f"Node {held}"), ("drain", f"Node {others[0]}")}
    first, second = [one for one in answer.problems if one.kind == "drain"]
    texts = {first.about.name: first.text, second.about.name: second.text}
    assert texts[held] == "it is not drained within 10m: 1 pod left, held by disruption budgets"
    assert texts[others[0]] == f"its drain has not begun within 10m: {held} is not drained yet"
    assert answer.has(frozenset(("drain",)))


def test_the_answer_has_the_exact_command() -> None:
    answer = plan(settled(), [Drain("node-2"), Drain("node-1")], Options(60))
    assert answer.changes == ("drain node node-2", "drain node node-1 (kubectl drain node-2 node-1)")


def test_the_command_has_the_flags_that_it_needs() -> None:
    async def story(world: World) -> None:
        metadata = {"name": "agent", "namespace": NAMESPACE}
        spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", "v1", volumes=[SCRATCH])}
        await world.create("apps/v1/daemonsets", {"metadata": metadata, "spec": spec})
        for node, more in (("node-2", {"volumes": [SCRATCH]}), ("node-3", {})):
            bare = {"containers": [{"name": "c", "image": "i"}], "nodeName": node, **more}
            await world.create("v1/pods", {"metadata": {**metadata, "name": node}, "spec": bare})
        await world.clock.sleep(30)

    snapshot, always = snapshot_of(story), "--ignore-daemonsets"
    for node, flags in (
        ("node-1", always),
        ("node-2", f"{always} --delete-emptydir-data --force"),
        ("node-3", f"{always} --force"),
    ):
        answer = plan(snapshot, [Drain(node)], Options(60))
        assert answer.changes == (f"drain node {node} (kubectl drain {node} {flags})",)
        assert {one.about.name for one in answer.timeline if one.what == "evicted"} == ({node} - {"node-1"})


def test_pods_do_not_move_to_a_node_that_is_drained_next() -> None:
    answer = plan(settled(), [Drain("node-1"), Drain("node-2")], Options(600))
    moved = [one for one in answer.timeline if one.what == "created" and one.about.kind == "Deployment"]
    evicted = sum(one.count for one in answer.timeline if one.what == "evicted")
    assert sum(one.count for one in moved) <= evicted  # none is evicted twice
    fills = {fill.node: fill for fill in answer.nodes}
    assert fills["node-3"].pods > fills["node-3"].pods_before


def test_without_room_elsewhere_pods_are_pending_in_both_drains() -> None:
    answer = plan(crowded(), [Drain("node-1"), Drain("node-2"), Drain("node-1")], Options(300))
    assert {one.kind for one in answer.problems} >= {"pdb", "drain"}


def test_a_drain_that_ends_is_no_problem() -> None:
    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("web", 4))
        await world.create("apps/v1/statefulsets", stateful_set("db", 2))
        await world.create("policy/v1/poddisruptionbudgets", budget("web", minAvailable=2))
        await world.clock.sleep(60)

    answer = plan(snapshot_of(story), [Drain("node-1"), Drain("node-2")], Options(600))
    assert answer.problems == ()
    assert [one.about.name for one in answer.timeline if one.what == "drained"] == ["node-1", "node-2"]


class _Cluster:
    """Pods on nodes, and a client whose evictions end them at once."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.store = Store()
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.noted: list[tuple[str, str]] = []
        for number in range(pods):
            self.put(f"p{number:03}", self.nodes[number % nodes])
        twin: Any = SimpleNamespace(store=self.store, client=self, clock=self)
        self.draining = Draining(twin, self.note, [])

    def put(self, name: str, node: str) -> None:
        metadata = {"name": name, "namespace": "n", "uid": f"{name} on {node}"}
        spec = {"nodeName": node} if node else {}
        self.store.create(PODS.gvr, "n", name, {"metadata": metadata, "spec": spec})

    def note(self, what: str, about: Object, detail: str = "", at: float | None = None) -> None:
        self.noted.append((what, about.name))

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def patch(self, *args: object, **more: object) -> None:
        pass

    async def call(self, request: Request) -> bytes:
        name = request.path.split("/")[-2]
        self.store.delete(PODS.gvr, "n", name)
        return b""


def test_each_pod_is_decoded_as_often_with_many_nodes_as_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    decode, decoded = codec.decode, 0

    def counting(data: Any, type_: Any) -> Any:
        nonlocal decoded
        decoded += type_ is SimulatedPod
        return decode(data, type_)

    def cost(nodes: int) -> int:
        nonlocal decoded
        cluster = _Cluster(nodes, 60)
        decoded = 0
        assert cluster.draining.command(cluster.nodes) == f"kubectl drain {' '.join(cluster.nodes)} --force"
        asyncio.run(cluster.draining.run(cluster.nodes))
        assert sum(what == "evicted" for what, _ in cluster.noted) == 60
        return decoded

    monkeypatch.setattr(codec, "decode", counting)
    assert cost(1) == cost(20)


def test_a_pod_that_comes_before_its_nodes_turn_is_evicted_too() -> None:
    cluster = _Cluster(2, 2)
    cluster.put("later", "")
    cluster.draining.command(cluster.nodes)
    cluster.store.delete(PODS.gvr, "n", "p001")
    cluster.put("p001", "n0")  # on another node than before
    cluster.put("new", "n1")
    doc = cluster.store.get(PODS.gvr, "n", "later").copy()  # type: ignore[union-attr]
    doc["spec"] = {"nodeName": "n1"}
    cluster.store.update(PODS.gvr, "n", "later", doc)
    asyncio.run(cluster.draining.run(cluster.nodes))
    done = [name for what, name in cluster.noted if what in ("evicted", "drained")]
    assert done == ["p000", "p001", "n0", "later", "new", "n1"]


def test_a_pod_that_cannot_be_evicted_does_not_hold_up_the_next_node() -> None:
    """kubectl gives a node up if an eviction fails, as of a pod with two budgets, and goes on with the next one."""

    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("web", 1))
        await world.create("apps/v1/deployments", deployment("api", 2))
        for name in ("one", "two"):
            await world.create(
                "policy/v1/poddisruptionbudgets",
                {**budget("web", minAvailable=0), "metadata": {"name": name, "namespace": NAMESPACE}},
            )
        await world.clock.sleep(60)

    snapshot = snapshot_of(story)
    (web,) = [item.doc for item in snapshot.items(PODS.gvr) if item.name.startswith("web-")]
    held: Any = web["spec"]
    other = next(name for name in ("node-1", "node-2", "node-3") if name != held["nodeName"])
    answer = plan(snapshot, [Drain(held["nodeName"]), Drain(other)], Options(600))
    assert [one.about.name for one in answer.timeline if one.what == "drained"] == [other]
    problems = {(one.kind, one.about.kind): one.text for one in answer.problems}
    assert problems.keys() == {("refused", "Pod"), ("drain", "Node")}
    assert "more than one PodDisruptionBudget" in problems["refused", "Pod"]
    assert problems["drain", "Node"] == "it is not drained: 1 pod cannot be evicted, and kubectl gives it up"
