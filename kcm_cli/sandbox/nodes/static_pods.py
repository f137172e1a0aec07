"""Static pods: those that a kubelet runs without being asked. The API server has a mirror pod of each.

A mirror pod that is missing while its node's kubelet runs is created: at the start, after it was deleted, and after its
node was added again.

upstream: pkg/kubelet/pod/mirror_client.go
"""

from collections.abc import Iterable

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_str
from kcm_cli.rest.errors import AlreadyExists
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes.eviction import Alive
from kcm_cli.sandbox.views import NODES, PODS, SimulatedNode, SimulatedPod
from kcm_cli.sandbox.work import act_for, work_on

WORKERS = 1


class StaticPods:
    """Creates mirror pods. The workqueue's keys are those of the pods."""

    def __init__(self, means: Means, agents: Alive, pods: Iterable[Doc]) -> None:
        """agents: listen to nodes before. pods: the mirror pods, each with its node's name."""
        self._client, self._agents = means.kubelet, agents
        self._docs = {
            f"{nested_str(doc, 'metadata', 'namespace')}/{nested_str(doc, 'metadata', 'name')}": doc for doc in pods
        }
        self._on: dict[str, list[str]] = {}
        for key, doc in self._docs.items():
            self._on.setdefault(nested_str(doc, "spec", "nodeName"), []).append(key)
        self._queue = means.queue("static pods")
        self._record = means.record("kubelet", "Pod")
        self._nodes, self._pods = means.informers.get(NODES), means.informers.get(PODS)
        if self._docs:
            self._nodes.listen(on_add=self._seen, on_update=lambda _, node: self._seen(node))
            self._pods.listen(on_delete=self._deleted)

    async def run(self) -> None:
        """Run the workers until cancelled."""
        await work_on(self._queue, WORKERS, self._sync, self._record)

    def _seen(self, node: SimulatedNode) -> None:
        for key in self._on.get(node.name, ()):
            self._queue.add(key)

    def _deleted(self, pod: SimulatedPod) -> None:
        if pod.key in self._docs:
            self._queue.add(pod.key)

    async def _sync(self, key: str) -> None:
        doc = self._docs[key]
        name = nested_str(doc, "spec", "nodeName")
        node = self._nodes.store.get(name)
        if node is None or not node.status.allocatable or self._agents.alive(name) is None:
            return  # a kubelet admits pods once it has reported what its node has
        if self._pods.store.get(key) is not None:
            return
        act_for(name)
        try:
            await self._client.create(PODS, nested_str(doc, "metadata", "namespace"), doc)
        except AlreadyExists:
            return
