"""Eviction of pods from a node that runs short of memory, disk space or process ids.

The annotation ``sandbox.kcm.dev/pressure`` of a Node names the resources. While it does, the kubelet rejects new pods,
and evicts one every ten seconds.

upstream: pkg/kubelet/eviction/{eviction_manager,helpers}.go
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kcm_cli.api.core import Taint
from kcm_cli.machinery import quantity
from kcm_cli.machinery.quantity import Format
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.planning.tolerations import NO_SCHEDULE, untolerated
from kcm_cli.sandbox import requests
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes.admission import Rejection
from kcm_cli.sandbox.nodes.agents import Agent
from kcm_cli.sandbox.nodes.machine import EVICTED
from kcm_cli.sandbox.nodes.shape import MEMORY_PRESSURE
from kcm_cli.sandbox.nodes.usage import Holder, Usage, Usages
from kcm_cli.sandbox.requests import MEMORY
from kcm_cli.sandbox.views import NODES, SimulatedPod, containers_of
from kcm_cli.sandbox.work import act_for, work_on

INTERVAL_S = 10.0
CRITICAL = 2_000_000_000
"""The minimum priority of critical pods, which are neither rejected nor evicted."""
_RESOURCES = {MEMORY_PRESSURE: MEMORY, "DiskPressure": "ephemeral-storage", "PIDPressure": "pids"}
_MEMORY_TAINT = Taint("node.kubernetes.io/memory-pressure", "", NO_SCHEDULE)


def refuses(pod: SimulatedPod, pressures: Sequence[str]) -> Rejection | None:
    """The rejection of a pod by a node under pressure, or None. If only memory is short, pods are accepted that are not
    BestEffort, or tolerate the taint."""
    if not pressures or _is_critical(pod):
        return None
    if tuple(pressures) == (MEMORY_PRESSURE,) and (
        pod.status.qos_class != "BestEffort"
        or untolerated((_MEMORY_TAINT,), pod.spec.tolerations, (NO_SCHEDULE,)) is None
    ):
        return None
    return Rejection(EVICTED, f"The node had condition: [{' '.join(pressures)}]. ")


def victim(used: Iterable[Usage], resource: str) -> Usage | None:
    """The pod to evict. If memory is short, pods that use more than they request are first, then those of lower
    priority, then those with the most usage above their request; otherwise those of lower priority."""

    def rank(usage: Usage) -> tuple[bool, int, int, str]:
        beyond = usage.total(MEMORY) - requests.of_pod(usage.pod).get(MEMORY, 0) if resource == MEMORY else 0
        return beyond <= 0, usage.pod.spec.priority or 0, -beyond, usage.pod.key

    return min((usage for usage in used if not _is_critical(usage.pod)), key=rank, default=None)


def message(usage: Usage, resource: str) -> str:
    """The message of the Event and the status of an evicted pod."""
    text = f"The node was low on resource: {resource}. "
    for container in containers_of(usage.pod) if resource == MEMORY else ():
        amount = quantity.make(usage.containers.get(container.name, {}).get(MEMORY, 0), 0, Format.BINARY_SI)
        asked = (container.resources.requests if container.resources is not None else None) or {}
        request = quantity.parse(asked.get(MEMORY, "0"))
        if amount > request:
            more = f"has larger consumption of {resource}"
            text += f"Container {container.name} was using {amount}, request is {request}, {more}. "
    return text


def _is_critical(pod: SimulatedPod) -> bool:
    return (pod.spec.priority or 0) >= CRITICAL


class Alive(Protocol):
    """Knows which nodes have a kubelet that runs."""

    def alive(self, name: str) -> Agent | None: ...

    def listen(self, changed: Callable[[str], None]) -> None:
        """Call a function with the name of each node whose kubelet came up, failed or recovered."""


class Running(Protocol):
    """Runs pods."""

    def running_on(self, node: str) -> Sequence[SimulatedPod]:
        """The pods of a node that are not being stopped."""

    def evict(self, key: str, why: str) -> None:
        """Stop a pod, which fails."""


class Evictions:
    """Evicts pods from nodes under pressure. ``annotations``: those of a pod, including those of rules."""

    def __init__(
        self,
        agents: Alive,
        kubelets: Running,
        annotations: Callable[[SimulatedPod], Mapping[str, str]],
        means: Means,
    ) -> None:
        self._agents, self._kubelets = agents, kubelets
        self._annotations = annotations
        self._events = means.events
        self._queue = means.queue("evictions")
        self._record = means.record("kubelet", "Node")
        agents.listen(self._queue.add)

    async def run(self) -> None:
        """Evict until cancelled."""
        await work_on(self._queue, 1, self._sync, self._record)

    async def _sync(self, name: str) -> None:
        agent = self._agents.alive(name)
        if agent is None or not agent.pressures:
            return
        act_for(name)
        resource = _RESOURCES[agent.pressures[0]]
        node = EventRef("", NODES.kind, "", name, name)
        self._events.kubelet(name, Notice(node, "Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}"))
        pods = self._kubelets.running_on(name)
        chosen = victim(Usages((pod, (Holder(pod.uid, self._annotations(pod)),)) for pod in pods), resource)
        if chosen is not None:
            self._kubelets.evict(chosen.pod.key, message(chosen, resource))
        self._queue.add_after(name, INTERVAL_S)
