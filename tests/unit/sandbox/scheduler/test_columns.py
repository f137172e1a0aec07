"""Cached values of nodes equal new ones."""

import random
from itertools import count

import pytest

from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import Requirement, Selector
from kcm_cli.sandbox.scheduler.columns import Columns
from kcm_cli.sandbox.scheduler.decide import Placement, decide
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.views import NODES, SimulatedPod
from tests.unit.sandbox.scheduler.build import Tree, node_doc, pod, state_of, volumes_of

TAINTS = ([], [{"key": "k", "effect": "PreferNoSchedule"}], [{"key": "k", "effect": "NoSchedule"}])
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
]


def some_node(name: str, rng: random.Random) -> Tree:
    zone = {"topology.kubernetes.io/zone": rng.choice("xyz")} if rng.random() < 0.9 else {}
    images = {"i:1": rng.choice((0, 300))}
    return node_doc(name, zone, pods=rng.choice(("3", "9")), taints=rng.choice(TAINTS), images=images)


def some_pod(name: str, rng: random.Random) -> PodInfo:
    spec: Tree = {"containers": [{"name": "c", "image": "i:1"}]} if rng.random() < 0.3 else {}
    spread = SPREAD if rng.random() < 0.6 else []
    return pod(name, {"app": rng.choice("ab")}, cpu=rng.choice(("", "100m")), topologySpreadConstraints=spread, **spec)


def alike(pod: SimulatedPod) -> Selector:
    return Selector((Requirement("app", "in", (pod.labels["app"],)),))


@pytest.mark.parametrize("seed", range(4))
def test_a_cached_state_decides_like_a_new_one(seed: int) -> None:
    rng, numbers, live = random.Random(seed), count(), ClusterState(alike)
    docs: dict[str, Tree] = {}
    placed: dict[str, list[PodInfo]] = {}
    for step in range(60):
        name = f"n{rng.randrange(12)}"
        if step < 6 or rng.random() < 0.3:
            docs[name] = some_node(name, rng)
            live.set_node(NODES.decode(codec.encode(docs[name])))
        elif name in docs and rng.random() < 0.1:
            del docs[name]
            placed.pop(name, None)
            for info in list(live.nodes[name].pods.values()):
                live.take_off(info.key)
            live.remove_node(name)
        elif placed.get(name) and rng.random() < 0.3:
            live.take_off(placed[name].pop().key)
        elif name in docs:
            placed.setdefault(name, []).append(some_pod(f"q{step}", rng))
            live.place(placed[name][-1], name)
        info = some_pod(f"p{next(numbers)}", rng)
        anew = state_of(*(docs[node] for node in live.nodes), pods={node: placed.get(node, []) for node in live.nodes})
        anew.selector_for = alike
        found = decide(info, live, volumes_of(), random.Random(step), start=step)
        assert found == decide(info, anew, volumes_of(), random.Random(step), start=step)
        if isinstance(found, Placement):
            live.place(info, found.node)
            placed.setdefault(found.node, []).append(info)


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_any_age_have_the_values_of_now(seed: int) -> None:
    """Some are read often, others after so many changes of pods that the older changes were forgotten."""
    rng = random.Random(seed)
    nodes = list(state_of(*(node_doc(f"n{number}") for number in range(5))).nodes.values())
    columns, now = Columns(nodes), dict.fromkeys((node.name for node in nodes), 0)
    for step in range(1, 2000):
        name = rng.choice(nodes).name
        now[name] = step
        columns.changed(name, only_pods=rng.random() < 0.95)
        for age in (1, 10, 30, 200):
            if rng.randrange(age) == 0:
                column = columns.column("step", age, by_pods=True)
                read = column.of(range(len(nodes)), columns.nodes, lambda node: now[node.name])
                assert list(read) == [now[node.name] for node in columns.nodes]
