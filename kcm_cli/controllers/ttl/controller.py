"""ttl-controller: annotates each node with the time for which its kubelet may cache Secrets and ConfigMaps.

upstream: pkg/controller/ttl
"""

import logging

from kcm_cli.api.core import NODES, Node
from kcm_cli.component.logs import V2
from kcm_cli.controllers.ttl import plan
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.durations import format_duration
from kcm_cli.machinery.kref import kobj
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

WORKERS = 5


class TTLController:
    """Keys are names of nodes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._nodes = context.cache(NODES).store
        self._step = 0

    async def sync(self, key: str) -> None:
        node = self._nodes.get(key)
        if node is None:
            return
        seconds = plan.plan(node.annotations.get(plan.ANNOTATION), self._step)
        if seconds is not None:
            body: Doc = {"metadata": {"annotations": {plan.ANNOTATION: str(seconds)}}}
            try:
                await self._client.patch(NODES, "", key, body, reason="TTL by the number of nodes")
            except RequestError as error:
                more = {"node": kobj(node), "err": str(error)}
                log.log(V2, "Failed to change ttl annotation for node", extra={"fields": more})
                raise
            log.log(
                V2, "Changed ttl annotation", extra={"fields": {"node": kobj(node), "TTL": format_duration(seconds)}}
            )

    def changed(self, node: Node) -> Keys:
        """The node's name. The number of nodes is updated; it applies to nodes that are synced from now on."""
        self._count()
        return (node.name,)

    def deleted(self, node: Node) -> Keys:
        """Update the number of nodes; no key is queued."""
        self._count()
        return ()

    def _count(self) -> None:
        self._step = plan.next_step(self._step, len(self._nodes))


CONTROLLER = Controller(
    TTLController,
    Queue(
        "ttlcontroller",
        Watch(NODES, changed=TTLController.changed, deleted=TTLController.deleted),
        sync=TTLController.sync,
        failures=unhandled(),
        workers=WORKERS,
        writes=(NODES,),
    ),
    announces=starting("TTL controller"),
)
