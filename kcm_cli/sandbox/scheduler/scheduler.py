"""Binds pending pods to nodes."""

import logging

from kcm_cli.component.clock import Clock
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.pods import is_terminal
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.workqueue import WorkQueue
from kcm_cli.sandbox.views import BY_NODE, NODES, POD_METADATA, PODS, SimulatedNode, SimulatedPod, node_of
from kcm_cli.sandbox.work import work_on

log = logging.getLogger(__name__)
WORKERS = 4


class Scheduler:
    """Puts each pod on the ready node with the fewest pods."""

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._pods = informers.get(PODS)
        self._nodes = informers.get(NODES)
        self._queue = WorkQueue("scheduler", clock)
        self._assumed: dict[str, str] = {}
        self._pods.store.add_index(BY_NODE, node_of)
        self._pods.listen(on_add=self._seen, on_update=lambda _, pod: self._seen(pod), on_delete=self._gone)
        self._nodes.listen(on_add=lambda _: self._again(), on_update=lambda _, __: self._again())

    async def run(self) -> None:
        """Schedule until cancelled. The informers must run, too."""
        await work_on(self._queue, WORKERS, self._sync)

    def _seen(self, pod: SimulatedPod) -> None:
        if pod.spec.node_name:
            self._assumed.pop(pod.key, None)
        elif pod.spec.scheduler_name == "default-scheduler" and not pod.deleting and not is_terminal(pod):
            self._queue.add(pod.key)

    def _gone(self, pod: SimulatedPod) -> None:
        self._assumed.pop(pod.key, None)
        self._again()

    def _again(self) -> None:
        for pod in self._pods.store.by_index(BY_NODE, ""):
            self._seen(pod)

    async def _sync(self, key: str) -> None:
        pod = self._pods.store.get(key)
        if pod is None or pod.spec.node_name or key in self._assumed or pod.deleting or pod.spec.scheduling_gates:
            return
        node = self._choose()
        if node is None:
            return
        self._assumed[key] = node
        binding: Doc = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._client.create(POD_METADATA, pod.namespace, binding, name=pod.name, subresource="binding")
        except (NotFound, Conflict):
            self._assumed.pop(key, None)

    def _choose(self) -> str | None:
        best: tuple[int, str] | None = None
        assumed = list(self._assumed.values())
        for node in self._nodes.store:
            if node.spec.unschedulable or not _ready(node):
                continue
            used = len(self._pods.store.by_index(BY_NODE, node.name)) + assumed.count(node.name)
            room = quantity.parse((node.status.allocatable or {}).get("pods", "0")).value()
            if used < room and (best is None or (used, node.name) < best):
                best = (used, node.name)
        return best[1] if best else None


def _ready(node: SimulatedNode) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
