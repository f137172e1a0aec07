"""The NoExecute taints of nodes that are not ready, at the rate of each zone.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go#processTaintBaseEviction, doNoExecuteTaintingPass
"""

import asyncio
import logging
from collections.abc import Iterable

from kcm_cli.api.core import NODES, Condition, Node
from kcm_cli.api.well_known import NOT_READY, UNREACHABLE
from kcm_cli.component.logs import V2
from kcm_cli.controllers.node_lifecycle import plan
from kcm_cli.controllers.node_lifecycle.metrics import NodeMetrics
from kcm_cli.controllers.node_lifecycle.plan import READY
from kcm_cli.controllers.node_lifecycle.zones import ZoneQueue
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.conditions import find
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

TAINT_PERIOD_S = 0.1
ATTEMPTS = 5
_QUEUED = {
    NOT_READY: "Node is NotReady. Adding it to the Taint queue",
    UNREACHABLE: "Node is unresponsive. Adding it to the Taint queue",
}


class EvictionTaints:
    """Adds and removes the taints. ``rate``: the nodes per second of a new zone."""

    def __init__(self, context: ControllerContext, metrics: NodeMetrics, rate: float) -> None:
        self._clock, self._client, self._metrics = context.clock, context.client, metrics
        self._rate = rate
        self._nodes = context.cache(NODES).store
        self._queues: dict[str, ZoneQueue] = {}
        self._tainting = asyncio.Lock()
        self._tainted: dict[str, Node] = {}
        """Nodes as they were last seen with a taint. Those of a check may be older."""

    @property
    def waiting(self) -> bool:
        """Whether a node is queued."""
        return any(self._queues.values())

    def forget(self, name: str) -> None:
        self._tainted.pop(name, None)
        for queue in self._queues.values():
            queue.remove(name)

    def drop(self, zone: str) -> None:
        """Drop a zone without nodes."""
        self._queues.pop(zone, None)

    def set_rate(self, zone: str, rate: float) -> None:
        self._queues.setdefault(zone, ZoneQueue(rate)).set_rate(rate, self._clock.monotonic())

    async def follow(self, node: Node, ready: Condition) -> None:
        """Taint a node by its Ready condition. Errors are logged: the next check retries, and the node's pods are
        handled all the same."""
        try:
            await self._evict_by(node, ready)
        except RequestError as error:
            text = (
                "Failed to instantly swap UnreachableTaint to NotReadyTaint. Will try again in the next cycle"
                if ready.status == "False"
                else "Failed to instantly swap NotReadyTaint to UnreachableTaint. Will try again in the next cycle"
                if ready.status == "Unknown"
                else "Failed to remove taints from node. Will retry in next iteration"
            )
            log.error(text, extra={"fields": {"node": kobj(node), "err": str(error)}})

    async def _evict_by(self, node: Node, ready: Condition) -> None:
        """Queue a node for the taint of its Ready condition. If it has the other taint, they are swapped at once. A
        status that is none of True, False and Unknown changes nothing."""
        keys = plan.plan_eviction(ready)
        if keys is None:
            if ready.status == "True":
                await self._reachable(node)
            return
        key, other = keys
        if plan.has_taint(node, other):
            await self._taint(node, {key}, {other})
            return
        queue = self.queue_of(node)
        if plan.has_taint(node, key):
            self._tainted[node.name] = node
        else:
            queue.remove(node.name)
        if queue.add(node.name):
            fields = {"node": kobj(node), "timeStamp": format_time(self._clock.now())}
            log.log(V2, _QUEUED[key], extra={"fields": fields})

    async def _reachable(self, node: Node) -> None:
        """Remove both eviction taints, and remove the node from its queue."""
        if await self._taint(node, set(), {NOT_READY, UNREACHABLE}):
            log.log(V2, "Node is healthy again, removed all taints", extra={"fields": {"node": kobj(node)}})
        self._tainted.pop(node.name, None)
        self.queue_of(node).remove(node.name)

    async def reachable(self, node: Node) -> None:
        """Remove both taints of a node. Errors are logged: the next check retries."""
        try:
            await self._reachable(node)
        except RequestError as error:
            log.error("Failed to remove taints from Node", extra={"fields": {"node": kobj(node), "err": str(error)}})

    async def let_off(self, nodes: Iterable[Node]) -> None:
        """Remove both taints of all nodes, also those that these nodes do not show yet, and one that is under way. No
        zone may have a rate by now."""
        async with self._tainting:
            for node in nodes:
                await self.reachable(self._tainted.get(node.name, node))

    async def _taint(self, node: Node, add: set[str], remove: set[str]) -> Node | None:
        """The node as it was given other taints; None if it has these already, is gone, or does not call for them by a
        version that is read after a conflict: it may be ready again."""
        attempt = 1
        while True:
            taints = plan.swap_taints(node, add, remove, plan.NO_EXECUTE, self._clock.now())
            if taints == node.spec.taints:
                return None
            reason = f"node is {'not ready' if NOT_READY in add else 'unreachable'}" if add else "node is healthy again"
            try:
                written = await writes.send(self._client, plan.taints_patch(node, taints, reason))
                return written if isinstance(written, Node) else node
            except NotFound:
                return None
            except Conflict:
                if attempt == ATTEMPTS:
                    raise
            attempt += 1
            node = await self._client.get(NODES, "", node.name)
            if add and add != plan.eviction_keys(node):
                return None

    def queue_of(self, node: Node) -> ZoneQueue:
        """The queue of a node's zone, which is made at the first use."""
        zone = plan.zone_of(node)
        queue = self._queues.get(zone)
        if queue is None:
            log.info("Initializing eviction metric for zone", extra={"fields": {"zone": zone}})
            queue = self._queues[zone] = ZoneQueue(self._rate)
            self._metrics.evicted(zone, 0)
        return queue

    async def evict(self) -> None:
        """Taint queued nodes, at each zone's rate."""
        async with self._tainting:
            for zone, queue in tuple(self._queues.items()):  # a zone may come while a node is tainted
                await self._evict_next(zone, queue)

    async def _evict_next(self, zone: str, queue: ZoneQueue) -> None:
        while (name := queue.next(self._clock.monotonic())) is not None:
            node = self._nodes.get(name)
            ready = find(node.status.conditions, READY) if node is not None else None
            keys = plan.plan_eviction(ready) if ready is not None else None
            if node is None or keys is None:
                if node is None:
                    log.info("Node no longer present in nodeLister", extra={"fields": {"node": KRef(name)}})
                queue.done(name)
                continue
            key, other = keys
            has_it = plan.has_taint(node, key)
            try:
                tainted = await self._taint(node, {key}, {other})
            except RequestError as error:
                text = f"unable to taint {key} unresponsive Node {quote(name)}: {error}"
                log.error("Unhandled Error", extra={"fields": {"logger": "UnhandledError", "err": text}})
                queue.later(name, self._clock.monotonic() + TAINT_PERIOD_S)
                continue
            if tainted is not None:
                self._tainted[name] = tainted
            queue.done(name)
            if has_it or tainted is not None:
                self._metrics.evicted(zone, 1)
