"""ttl-controller: notes on each node how long its kubelet may cache Secrets and ConfigMaps.

upstream: pkg/controller/ttl
"""

from kcm_cli.api.core import NODES, Node
from kcm_cli.controllers.ttl import plan
from kcm_cli.engine.context import ControllerContext, Runnable

WORKERS = 5


def build(context: ControllerContext) -> Runnable:
    controller = TTLController(context)
    return context.worker(controller.queue, controller.sync, count=WORKERS, waits_for=(controller.nodes,))


class TTLController:
    """Keys are names of nodes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._step = 0
        self.queue = context.queue("ttlcontroller")
        self.nodes = context.informers.get(NODES)
        self.nodes.listen(
            on_add=self._changed, on_update=lambda old, new: self._changed(new), on_delete=lambda node: self._count()
        )

    async def sync(self, key: str) -> None:
        node = self.nodes.store.get(key)
        wanted = plan.seconds(self._step)
        if node is None or not plan.differs(node.annotations.get(plan.ANNOTATION), wanted):
            return
        body = {"metadata": {"annotations": {plan.ANNOTATION: str(wanted)}}}
        await self._client.patch(NODES, "", key, dict(body))

    def _changed(self, node: Node) -> None:
        self._count()
        self.queue.add(node.name)

    def _count(self) -> None:
        self._step = plan.next_step(self._step, len(self.nodes.store))
