"""Which workloads are not ready, and why, as the store changes."""

from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.status.counts import Counts
from kcm_cli.sandbox.status.state import Workload
from kcm_cli.sandbox.status.workloads import MOST, PODS, WORKLOADS

KINDS = {
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
    "jobs": "Job",
}


class Cluster:
    def __init__(self) -> None:
        self.store = Store(None)
        self.counts = Counts(self.store, LoopClock())

    def put(self, plural: str, name: str, spec: Any = None, status: Any = None, **metadata: Any) -> None:
        meta = {"namespace": "default", "name": name, **metadata}
        doc = {"kind": KINDS.get(plural, "Pod"), "metadata": meta, "spec": spec or {}, "status": status or {}}
        gvr = PODS if plural == "pods" else WORKLOADS[plural]
        if self.store.get(gvr, "default", name) is None:
            self.store.create(gvr, "default", name, doc)
        else:
            self.store.update(gvr, "default", name, doc)

    def pod(self, name: str, owner: str = "", **status: Any) -> None:
        self.put("pods", name, status=status, **owned(owner))

    def delete(self, plural: str, name: str) -> None:
        self.store.delete(PODS if plural == "pods" else WORKLOADS[plural], "default", name)

    @property
    def told(self) -> list[tuple[str, str, str]]:
        return [
            (f"{one.kind} {one.name}", f"{one.ready}/{one.wanted}", one.why) for one in self.counts.workloads.unready
        ]


def owned(owner: str) -> dict[str, Any]:
    kind, _, name = owner.partition(" ")
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]} if owner else {}


def waiting(reason: str, message: str = "") -> list[Any]:
    return [{"state": {"waiting": {"reason": reason, "message": message}}}]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_deployment_says_what_its_pods_wait_for(cluster: Cluster) -> None:
    cluster.put("deployments", "web", {"replicas": 3}, {"readyReplicas": 1})
    assert cluster.told == [("Deployment web", "1/3", "")]
    cluster.put("replicasets", "web-1", {"replicas": 3}, {"readyReplicas": 1}, **owned("Deployment web"))
    cluster.pod("web-1-a", "ReplicaSet web-1", phase="Pending", containerStatuses=waiting("ContainerCreating"))
    assert cluster.told == [("Deployment web", "1/3", "")]
    cluster.pod("web-1-a", "ReplicaSet web-1", phase="Pending", containerStatuses=waiting("ErrImagePull", "no\nimage"))
    assert cluster.told == [("Deployment web", "1/3", "ErrImagePull: no image (web-1-a)")]
    cluster.pod(
        "web-1-b", "ReplicaSet web-1", phase="Pending", initContainerStatuses=waiting("ErrImagePull", "no image")
    )
    assert cluster.told == [("Deployment web", "1/3", "ErrImagePull: no image (web-1-a and 1 more)")]
    cluster.delete("pods", "web-1-a")
    cluster.pod("web-1-b", "ReplicaSet web-1", phase="Running")
    assert cluster.told == [("Deployment web", "1/3", "")]
    cluster.put("deployments", "web", {"replicas": 3}, {"readyReplicas": 3})
    assert cluster.told == []


@pytest.mark.parametrize("condition", ["ReplicaFailure", "Progressing"])
def test_what_a_workload_says_itself_is_first(cluster: Cluster, condition: str) -> None:
    bad = {
        "type": condition,
        "status": "True" if condition == "ReplicaFailure" else "False",
        "reason": "R",
        "message": "m",
    }
    cluster.put("deployments", "web", {"replicas": 2}, {"readyReplicas": 2, "conditions": [bad]})
    assert cluster.told == [("Deployment web", "2/2", "R: m")]


@pytest.mark.parametrize(
    ("plural", "spec", "status", "figures"),
    [
        ("deployments", {}, {}, "0/1"),
        ("statefulsets", {"replicas": 2}, {"readyReplicas": 1}, "1/2"),
        ("daemonsets", {}, {"desiredNumberScheduled": 3, "numberReady": 2}, "2/3"),
        ("jobs", {}, {"active": 2, "ready": 1}, "1/2"),
        ("replicasets", {"replicas": 1}, {}, "0/1"),
    ],
)
def test_kinds(cluster: Cluster, plural: str, spec: Any, status: Any, figures: str) -> None:
    cluster.put(plural, "x", spec, status)
    assert cluster.told == [(f"{KINDS[plural]} x", figures, "")]
    cluster.delete(plural, "x")
    assert cluster.told == []


@pytest.mark.parametrize(
    ("plural", "spec", "status"),
    [
        ("deployments", {"replicas": 0}, {}),
        ("jobs", {"suspend": True}, {"active": 1}),
        ("jobs", {}, {"conditions": [{"type": "Failed", "status": "True", "reason": "R"}]}),
        ("daemonsets", {}, {}),
    ],
)
def test_nothing_is_wanted(cluster: Cluster, plural: str, spec: Any, status: Any) -> None:
    cluster.put(plural, "x", spec, status)
    assert cluster.told == []


def test_what_is_being_deleted_lacks_nothing(cluster: Cluster) -> None:
    cluster.put("statefulsets", "db", {"replicas": 2}, {}, deletionTimestamp="2026-01-01T00:00:00Z")
    unschedulable = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}]
    cluster.put("pods", "p", {}, {"conditions": unschedulable}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert cluster.told == []


@pytest.mark.parametrize("owner", ["", "Widget w"])
def test_a_pod_of_no_workload_is_shown_itself(cluster: Cluster, owner: str) -> None:
    bad = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}]
    cluster.pod("p", owner, phase="Pending", conditions=bad)
    assert cluster.told == [("Pod p", "0/1", "Unschedulable: no node")]
    cluster.pod("p", owner, phase="Failed", conditions=bad)
    assert cluster.told == []


def test_those_with_a_reason_are_first_then_those_that_lack_most(cluster: Cluster) -> None:
    cluster.put("statefulsets", "a", {"replicas": 1})
    cluster.put("statefulsets", "b", {"replicas": 9})
    cluster.put("statefulsets", "c", {"replicas": 1})
    cluster.pod("c-0", "StatefulSet c", phase="Pending", containerStatuses=waiting("CrashLoopBackOff"))
    assert [name for name, _, _ in cluster.told] == ["StatefulSet c", "StatefulSet b", "StatefulSet a"]


def test_objects_that_exist_already(cluster: Cluster) -> None:
    cluster.put("deployments", "web", {"replicas": 1})
    cluster.put("replicasets", "web-1", {"replicas": 1}, {}, **owned("Deployment web"))
    cluster.pod("web-1-a", "ReplicaSet web-1", phase="Pending", containerStatuses=waiting("CrashLoopBackOff"))
    again = Counts(cluster.store, LoopClock())
    assert again.workloads.unready == (Workload("Deployment", "default", "web", 0, 1, "CrashLoopBackOff (web-1-a)"),)


def test_a_replica_set_that_is_released_is_a_workload(cluster: Cluster) -> None:
    cluster.put("replicasets", "web-1", {"replicas": 1}, {}, **owned("Deployment web"))
    assert cluster.told == []
    cluster.put("replicasets", "web-1", {"replicas": 1}, {})
    assert cluster.told == [("ReplicaSet web-1", "0/1", "")]


def test_odd_objects_and_long_texts_are_bounded(cluster: Cluster) -> None:
    cluster.put("deployments", "odd", {"replicas": "x"}, {"conditions": 3})
    cluster.pod("p", phase="Pending", containerStatuses=waiting("R", "x" * 100_000))
    ((_, _, why),) = cluster.told
    assert len(why) == 200
    for number in range(2 * MOST):
        cluster.put("statefulsets", f"s{number}", {"replicas": 1})
    assert len(cluster.told) == MOST


def test_nothing_is_kept_of_what_is_gone(cluster: Cluster) -> None:
    for number in range(20):
        name = f"web-{number}"
        cluster.put("deployments", name, {"replicas": 1})
        cluster.put("replicasets", f"{name}-1", {"replicas": 1}, {}, **owned(f"Deployment {name}"))
        cluster.pod(f"{name}-1-a", f"ReplicaSet {name}-1", phase="Pending", containerStatuses=waiting("R"))
        for plural, gone in (("deployments", name), ("pods", f"{name}-1-a"), ("replicasets", f"{name}-1")):
            cluster.delete(plural, gone)
    assert not any(
        held for name, held in vars(cluster.counts.workloads).items() if name.startswith("_") and isinstance(held, dict)
    )
