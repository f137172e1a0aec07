"""Whether a kubelet takes a pod that was given to its node: the last word after the scheduler's.

upstream: pkg/kubelet/lifecycle/predicate.go
"""

from collections.abc import Iterable, Mapping

import msgspec

from kcm_cli.planning.node_affinity import fits
from kcm_cli.planning.tolerations import NO_EXECUTE, untolerated
from kcm_cli.sandbox.scheduler import requests
from kcm_cli.sandbox.scheduler.podinfo import Port, conflict, host_ports
from kcm_cli.sandbox.scheduler.requests import CPU, MEMORY, PODS, STORAGE, Amounts
from kcm_cli.sandbox.views import SimulatedNode, SimulatedPod

_REASONS = {CPU: "OutOfcpu", MEMORY: "OutOfmemory", STORAGE: "OutOfephemeral-storage", PODS: "OutOfpods"}
_ORDER = (PODS, CPU, MEMORY, STORAGE)


class Rejection(msgspec.Struct, frozen=True):
    """Why a pod is not run. It fails for good."""

    reason: str
    message: str


class Occupancy:
    """What the pods that run on one node use."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[Amounts, tuple[Port, ...]]] = {}
        self._used: Amounts = {}

    def add(self, key: str, pod: SimulatedPod) -> None:
        self.remove(key)
        amounts = requests.of_pod(pod, held=False)
        self._pods[key] = (amounts, host_ports(pod))
        self._count(amounts, 1)

    def remove(self, key: str) -> None:
        known = self._pods.pop(key, None)
        if known is not None:
            self._count(known[0], -1)

    def rejects(self, pod: SimulatedPod, node: SimulatedNode) -> Rejection | None:
        """Why the node cannot take one more pod, this one; the first reason that there is."""
        room = requests.amounts(node.status.allocatable)
        asked = {**requests.of_pod(pod), PODS: 1}
        used = {**self._used, PODS: len(self._pods)}
        lacking = _lacking(asked, used, room)
        if lacking is not None:
            return lacking
        spec = pod.spec
        if not fits(node.name, node.labels, spec.node_selector, spec.affinity):
            return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
        wanted = host_ports(pod)
        taken = (port for _, ports in self._pods.values() for port in ports) if wanted else ()
        if any(conflict(port, other) for other in taken for port in wanted):
            return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
        if untolerated(node.spec.taints, spec.tolerations, (NO_EXECUTE,)) is not None:
            return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
        return None

    def refuses_resize(self, key: str, pod: SimulatedPod, node: SimulatedNode) -> str:
        """Why a pod that is there cannot have what it asks for now; empty if it can."""
        own, _ = self._pods.get(key, ({}, ()))
        used = {name: amount - own.get(name, 0) for name, amount in self._used.items()}
        lacking = _lacking(requests.of_pod(pod, held=False), used, requests.amounts(node.status.allocatable))
        return lacking.message if lacking is not None else ""

    def _count(self, amounts: Amounts, sign: int) -> None:
        for name, amount in amounts.items():
            self._used[name] = self._used.get(name, 0) + sign * amount


def _lacking(asked: Amounts, used: Amounts, room: Mapping[str, int]) -> Rejection | None:
    for name in _names(asked):
        amount = asked[name]
        if name not in room and "/" in name:
            continue  # the cluster's, not the node's
        if amount > 0 and amount > room.get(name, 0) - used.get(name, 0):
            counts = f"requested: {amount}, used: {used.get(name, 0)}, capacity: {room.get(name, 0)}"
            return Rejection(_REASONS.get(name, f"OutOf{name}"), f"Node didn't have enough resource: {name}, {counts}")
    return None


def _names(asked: Amounts) -> Iterable[str]:
    yield from (name for name in _ORDER if name in asked)
    yield from sorted(name for name in asked if name not in _ORDER)


def _predicate(name: str, reason: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {reason}")
