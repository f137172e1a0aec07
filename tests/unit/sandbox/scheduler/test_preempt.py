"""The victims of preemption."""

from kcm_cli.machinery import codec
from kcm_cli.sandbox.scheduler.preempt import BUDGETS, NoHelp, Victims
from tests.unit.sandbox.scheduler.build import node_doc, pod, preempted, state_of

NO_CLAIMS = "no new claims to deallocate, "


def running(name, priority, cpu="2", since="2026-01-01T00:00:00Z", labels=None, **more):
    return pod(name, labels, cpu=cpu, priority=priority, status={"startTime": since, **more})


def names(found):
    assert isinstance(found, Victims), found
    return found.node, [info.pod.name for info in found.pods]


def test_the_fewest_of_the_least_important():
    state = state_of(node_doc("n"), pods={"n": [running("low", 1), running("lower", 0)]})
    assert names(preempted(pod("p", cpu="2", priority=10), state)) == ("n", ["lower"])


def test_all_where_all_are_needed():
    state = state_of(node_doc("n"), pods={"n": [running("low", 1), running("lower", 0)]})
    assert names(preempted(pod("p", cpu="4", priority=10), state)) == ("n", ["low", "lower"])


def test_never_pods_of_equal_priority():
    state = state_of(node_doc("n"), pods={"n": [running("same", 10, "4")]})
    assert preempted(pod("p", cpu="2", priority=10), state) == NoHelp(
        NO_CLAIMS + "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_where_it_does_not_help():
    state = state_of(
        node_doc("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
        node_doc("b", cpu="1"),
        node_doc("c"),
        pods={"c": [running("big", 0, "1"), running("same", 10, "3")]},
    )
    assert preempted(pod("p", cpu="2", priority=10), state) == NoHelp(
        NO_CLAIMS
        + "preemption: 0/3 nodes are available: 1 Insufficient cpu, 2 Preemption is not helpful for scheduling."
    )


def test_never_by_policy():
    state = state_of(node_doc("n"), pods={"n": [running("low", 0, "4")]})
    found = preempted(pod("p", cpu="2", priority=10, preemptionPolicy="Never"), state)
    assert found == NoHelp(NO_CLAIMS + "preemption: not eligible due to preemptionPolicy=Never.", keeps_nomination=True)


def test_not_again_while_victims_are_leaving():
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = pod(
        "low", cpu="4", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, status={"conditions": [condition]}
    )
    state = state_of(node_doc("n"), pods={"n": [leaving]})
    found = preempted(pod("p", cpu="2", priority=10, status={"nominatedNodeName": "n"}), state)
    assert isinstance(found, NoHelp) and found.keeps_nomination


def test_the_node_with_the_lowest_of_the_highest():
    pods = {"a": [running("mid", 5, "4")], "b": [running("low1", 1), running("low2", 1)]}
    assert names(preempted(pod("p", cpu="4", priority=10), state_of(node_doc("a"), node_doc("b"), pods=pods)))[0] == "b"


def test_the_node_with_fewer_victims():
    pods = {"a": [running("a1", 0), running("a2", 0)], "b": [running("b1", 0, "4")]}
    assert names(preempted(pod("p", cpu="4", priority=10), state_of(node_doc("a"), node_doc("b"), pods=pods)))[0] == "b"


def test_the_node_whose_pods_started_last():
    pods = {"a": [running("a1", 0, "4", "2026-01-01T00:00:01Z")], "b": [running("b1", 0, "4", "2026-01-01T00:00:02Z")]}
    assert names(preempted(pod("p", cpu="4", priority=10), state_of(node_doc("a"), node_doc("b"), pods=pods)))[0] == "b"


def budget(allowed, name="b", key="app"):
    doc = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"selector": {"matchLabels": {key: "a"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return BUDGETS.decode(codec.encode(doc))


def test_disruption_budgets_are_respected_if_possible():
    pods = {"a": [running("a1", 0, "4", labels={"app": "a"})], "b": [running("b1", 5, "4")]}
    state = state_of(node_doc("a"), node_doc("b"), pods=pods)
    assert names(preempted(pod("p", cpu="4", priority=10), state, [budget(0)]))[0] == "b"
    assert names(preempted(pod("p", cpu="4", priority=10), state, [budget(1)]))[0] == "a"


def test_a_victim_counts_against_all_of_its_budgets():
    pods = [running("a1", 5, "2", labels={"app": "a", "tier": "a"}), running("a2", 0, "2", labels={"tier": "a"})]
    state = state_of(node_doc("n"), pods={"n": pods})
    found = preempted(pod("p", cpu="4", priority=10), state, [budget(0), budget(1, "c", "tier")])
    assert isinstance(found, Victims)
    assert found.violations == 2


def test_a_pod_whose_anti_affinity_excludes_the_preemptor_is_preempted():
    term = {"labelSelector": {"matchLabels": {"app": "p"}}, "topologyKey": "kubernetes.io/hostname"}
    keeps_away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    state = state_of(node_doc("n"), pods={"n": [pod("o", priority=0, affinity=keeps_away), pod("q", priority=0)]})
    assert names(preempted(pod("p", {"app": "p"}, priority=10), state)) == ("n", ["o"])
