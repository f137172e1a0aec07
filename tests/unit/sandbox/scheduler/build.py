"""Pods, nodes and states for tables."""

import random
from typing import Any

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.policy import PodDisruptionBudget
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kcm_cli.machinery import codec
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.scheduler.decide import Placement, decide
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, pod_info
from kcm_cli.sandbox.scheduler.preempt import NoHelp, Victims, preempt
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.stores import Volumes
from kcm_cli.sandbox.scheduler.verdict import FitError
from kcm_cli.sandbox.storage.views import CSI_STORAGE_CAPACITIES
from kcm_cli.sandbox.views import NODES, PODS

Tree = dict[str, Any]


def pod(name: str, labels: Tree | None = None, *, cpu: str = "", memory: str = "", **spec: Any) -> PodInfo:
    """A pod of one container; ``status`` and ``metadata`` are merged in."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    status, metadata = spec.pop("status", {}), spec.pop("metadata", {})
    doc = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels or {}, **metadata},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
        "status": status,
    }
    return pod_info(PODS.decode(codec.encode(doc)))


def node_doc(name: str, labels: Tree | None = None, *, cpu: str = "4", pods: str = "110", **spec: Any) -> Tree:
    """A node; ``images`` are sizes in MiB by name."""
    images = [{"names": [image], "sizeBytes": size << 20} for image, size in spec.pop("images", {}).items()]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}, "images": images},
    }


def state_of(*nodes: Tree, pods: dict[str, list[PodInfo]] | None = None) -> ClusterState:
    state = ClusterState()
    for doc in nodes:
        state.set_node(NODES.decode(codec.encode(doc)))
    for name, infos in (pods or {}).items():
        for info in infos:
            state.place(info, name)
    return state


def volumes_of(
    claims: list[Tree] | None = None,
    volumes: list[Tree] | None = None,
    classes: list[Tree] | None = None,
    drivers: list[Tree] | None = None,
    capacities: list[Tree] | None = None,
) -> Volumes:
    known = Volumes(Store(), Store(), Store())
    given: tuple[tuple[Store[Any], Any, list[Tree] | None], ...] = (
        (known.claims, PERSISTENT_VOLUME_CLAIMS, claims),
        (known.volumes, PERSISTENT_VOLUMES, volumes),
        (known.classes, STORAGE_CLASSES, classes),
        (known.drivers, CSI_DRIVERS, drivers),
        (known.capacities, CSI_STORAGE_CAPACITIES, capacities),
    )
    for store, kind, docs in given:
        for doc in docs or []:
            store.put(kind.decode(codec.encode(doc)))
    return known


def placed(info: PodInfo, state: ClusterState, volumes: Volumes | None = None) -> str:
    """The node for a pod, or the reason why there is none."""
    found = decide(info, state, volumes or volumes_of(), random.Random(1))
    return found.node if isinstance(found, Placement) else found.message()


def choices(info: PodInfo, state: ClusterState) -> set[str]:
    """All nodes that a pod may be placed on, for any random choice."""
    return {
        found.node
        for seed in range(20)
        if isinstance(found := decide(info, state, volumes_of(), random.Random(seed)), Placement)
    }


def preempted(info: PodInfo, state: ClusterState, budgets: list[PodDisruptionBudget] | None = None) -> Victims | NoHelp:
    unfit = decide(info, state, volumes_of(), random.Random(1))
    assert isinstance(unfit, FitError)
    return preempt(info, state, volumes_of(), budgets or [], unfit)
