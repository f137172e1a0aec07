import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Node, NodeSpec, Taint, Toleration
from kcm_cli.controllers.daemonset import placements
from kcm_cli.controllers.daemonset.placements import Placements
from kcm_cli.controllers.daemonset.plan import placement as rules
from kcm_cli.controllers.daemonset.plan.placement import ALWAYS, NEVER, ONLY_KEPT
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning import node_affinity
from kcm_cli.runtime.store import Store
from tests.kit.growth import grows_linearly
from tests.unit.controllers.daemonset.conftest import TEMPLATE, node_of, pod_of, set_of

DAEMON = "node.kubernetes.io/"


def affinity(*terms):
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def fit(node, **spec):
    return rules.fit(rules.requirements_of({"spec": spec}), node)


ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NAMED_N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


@pytest.mark.parametrize(
    ("node", "spec", "expected"),
    [
        (node_of(), {}, ALWAYS),
        (node_of(), {"nodeName": "n1"}, ALWAYS),
        (node_of(), {"nodeName": "n2"}, NEVER),
        (node_of(zone="a"), {"nodeSelector": {"zone": "a"}}, ALWAYS),
        (node_of(zone="b"), {"nodeSelector": {"zone": "a"}}, NEVER),
        (node_of(zone="a"), {"affinity": affinity(ZONE_A)}, ALWAYS),
        (node_of(zone="b"), {"affinity": affinity(ZONE_A)}, NEVER),
        (node_of(zone="b"), {"affinity": affinity(ZONE_A, NAMED_N1)}, ALWAYS),
        (node_of("n2"), {"affinity": affinity(NAMED_N1)}, NEVER),
        (node_of("n1", ("a", "NoSchedule")), {}, ONLY_KEPT),
        (node_of("n1", ("a", "NoExecute")), {}, NEVER),
        (node_of("n1", ("a", "NoSchedule"), ("b", "NoExecute")), {}, NEVER),
        (node_of("n1", ("a", "PreferNoSchedule")), {}, ALWAYS),
        (node_of("n1", ("a", "NoExecute")), {"tolerations": [{"operator": "Exists"}]}, ALWAYS),
        (node_of("n1", ("a", "NoSchedule")), {"tolerations": [{"key": "a", "effect": "NoSchedule"}]}, ALWAYS),
        (node_of("n1", ("a", "NoSchedule")), {"tolerations": [{"key": "a", "value": "x"}]}, ONLY_KEPT),
        *((node_of("n1", (DAEMON + key, effect)), {}, ALWAYS) for key, effect in [
            ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")]),
        (node_of("n1", (DAEMON + "not-ready", "NoSchedule")), {}, ONLY_KEPT),
        (node_of("n1", (DAEMON + "network-unavailable", "NoSchedule")), {}, ONLY_KEPT),
        (node_of("n1", (DAEMON + "network-unavailable", "NoSchedule")), {"hostNetwork": True}, ALWAYS),
    ],
)  # fmt: skip
def test_nodes_of_daemon_pods(node, spec, expected):
    assert fit(node, **spec) == expected


@pytest.mark.parametrize(("gate", "expected"), [(False, ONLY_KEPT), (True, ALWAYS)])
def test_numeric_tolerations_need_their_gate(gate, expected):
    taint = Taint("level", "5", "NoSchedule")
    node = Node(metadata=ObjectMeta("n1"), spec=NodeSpec(taints=(taint,)))
    wanted = rules.requirements_of({"spec": {"tolerations": [{"key": "level", "operator": "Lt", "value": "9"}]}})
    assert rules.fit(wanted, node, comparisons=gate) == expected


@pytest.mark.parametrize(
    ("own", "expected_at"),
    [
        ([], None),
        ([{"key": "x", "operator": "Exists"}], None),
        ([{"key": DAEMON + "not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}], 0),
        ([{"key": DAEMON + "not-ready", "operator": "Equal", "effect": "NoExecute"}], None),
    ],
)
def test_daemon_pods_tolerate_node_conditions_without_limit(own, expected_at):
    found = rules.tolerating(own, host_network=False)
    wanted = {"key": DAEMON + "not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert found.count(wanted) == 1
    assert found.index(wanted) == (len(own) if expected_at is None else expected_at)
    assert len(found) == len(own) + (6 if expected_at is None else 5)


@pytest.mark.parametrize(
    ("pod", "expected"), [(pod_of("n1"), "n1"), (pod_of("n2", bound=False), "n2")], ids=["bound", "waiting"]
)
def test_the_node_of_a_pod_is_its_assigned_or_required_one(pod, expected):
    assert rules.target_of(pod) == expected


def test_cached_placements_equal_computed_ones():
    memory = Placements(comparisons=False)
    daemon_set = set_of(template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"zone": "a"}}})
    assert memory.of(daemon_set, [node_of(zone="a"), node_of("n2", zone="b")]) == {"n1": ALWAYS, "n2": NEVER}
    assert memory.of(daemon_set, [node_of(zone="b"), node_of("n2", zone="a")]) == {"n1": NEVER, "n2": ALWAYS}
    assert memory.on(daemon_set, node_of("n2", ("a", "NoExecute"), zone="a")) == NEVER
    memory.forget_node(node_of("n2"))
    assert memory.of(daemon_set, [node_of("n2", zone="a")]) == {"n2": ALWAYS}


def test_a_changed_template_is_evaluated_again():
    memory = Placements(comparisons=False)
    node = node_of(zone="a")
    assert memory.on(set_of(), node) == ALWAYS
    changed = set_of(template={"spec": {"nodeName": "n9"}})
    metadata = msgspec.structs.replace(changed.metadata, generation=3)
    assert memory.on(msgspec.structs.replace(changed, metadata=metadata), node) == NEVER


@given(
    labels=st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from(["a", "b"])),
    taints=st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from(["NoSchedule", "NoExecute"])), max_size=2),
    tolerated=st.lists(st.sampled_from("xy"), max_size=2),
    selector=st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from(["a", "b"])),
)
def test_a_node_that_gets_a_pod_may_keep_it(labels, taints, tolerated, selector):
    wanted = rules.Requirements(
        node_selector=selector, tolerations=tuple(Toleration(key=key, operator="Exists") for key in tolerated)
    )
    found = rules.fit(wanted, node_of("n", *taints, **labels))
    assert found.keeps or not found.runs


def test_many_pods_of_one_node_take_linear_time():
    """A DaemonSet may adopt as many pods as its selector matches."""

    def prepare(size):
        pods = [pod_of(f"n1/p{number}") for number in range(size)]
        assert list(rules.by_node(pods)["n1"]) == pods
        return lambda: rules.by_node(pods)

    assert grows_linearly(prepare, 1500)


def test_the_terms_of_an_affinity_are_parsed_once(monkeypatch):
    parsed = []
    real = node_affinity.requirement
    monkeypatch.setattr(node_affinity, "requirement", lambda *args: parsed.append(args) or real(*args))
    spec = {"affinity": affinity(ZONE_A, NAMED_N1, {"matchExpressions": [{"key": "disk", "operator": "Exists"}]})}
    memory, daemon_set = Placements(comparisons=False), set_of(template={**TEMPLATE, "spec": spec})
    nodes = [node_of(f"n{number}", zone="b") for number in range(9)]
    assert [name for name, fit in memory.of(daemon_set, nodes).items() if fit.runs] == ["n1"]
    assert len(parsed) == 2


async def test_many_nodes_are_evaluated_in_turns(monkeypatch):
    monkeypatch.setattr(placements, "NODES", 2)
    store: Store[Node] = Store()
    for number in range(5):
        store.put(node_of(f"n{number}"))
    seen, evaluated = [], []
    real = placements.fit
    monkeypatch.setattr(placements, "fit", lambda *args, **more: evaluated.append(args[1].name) or real(*args, **more))

    async def other():
        for _ in range(2):
            seen.append(len(evaluated))
            store.pop("n4")
            await asyncio.sleep(0)

    memory, daemon_set = Placements(comparisons=False), set_of()
    task = asyncio.create_task(other())
    await memory.prepare(daemon_set, store)
    await task
    assert seen == [2, 4]
    assert evaluated == ["n0", "n1", "n2", "n3"]  # the one that was deleted meanwhile is not remembered
    assert list(memory.of(daemon_set, store)) == evaluated
