"""node-lifecycle-controller: taints nodes that stop reporting, and marks their pods as not ready.

It has three loops. Every --node-monitor-period the health of all nodes is checked. Changed nodes get the NoSchedule
taints of their conditions at once. Every 100 ms queued nodes get a NoExecute taint, at their zone's rate. With the gate
SeparateTaintEvictionController off, this controller runs the taint-eviction-controller, too.

upstream: pkg/controller/nodelifecycle
"""

import asyncio
import logging
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.api.coordination import LEASES, Lease
from kcm_cli.api.core import NODES, PODS, Condition, Node, Pod
from kcm_cli.api.well_known import LEASE_NAMESPACE, NOT_READY, UNREACHABLE
from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.component.logs import V1, V2
from kcm_cli.controllers.node_lifecycle import plan
from kcm_cli.controllers.node_lifecycle.config import NodeLifecycleConfig
from kcm_cli.controllers.node_lifecycle.metrics import NodeMetrics
from kcm_cli.controllers.node_lifecycle.plan import (
    READY,
    Health,
    Moment,
    Periods,
    Rates,
    ZoneState,
    past_grace_period,
    update_health,
)
from kcm_cli.controllers.node_lifecycle.pods import mark_not_ready
from kcm_cli.controllers.node_lifecycle.zones import ZoneQueue
from kcm_cli.controllers.taint_eviction import controller as taint_eviction
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch, only, own_key
from kcm_cli.engine.passes import ObjectFailed, for_each
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.durations import format_duration
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Path, Update, Value
from kcm_cli.planning.conditions import find
from kcm_cli.planning.pods import is_placed
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Scope
from kcm_cli.runtime.store import NODE, by_node

log = logging.getLogger(__name__)

TAINT_EVICTION = "taint-eviction-controller"
NODE_WORKERS, POD_WORKERS = 8, 4
TAINT_PERIOD_S = 0.1
ATTEMPTS = 5
RETRY_S = 0.02
_NOT_CHECKED = ObjectFailed("Update health of Node from Controller error, Skipping - no pods will be evicted", "node")
_QUEUED = {
    NOT_READY: "Node is NotReady. Adding it to the Taint queue",
    UNREACHABLE: "Node is unresponsive. Adding it to the Taint queue",
}


class ReadyNode(msgspec.Struct, frozen=True):
    """A node that was ready at the last check, with its Lease at that time. zone: None if it is in no zone."""

    node: Node
    lease: Lease | None
    zone: str | None


class NodeLifecycleController:
    """Keys are names of nodes, and namespace/name of pods."""

    def __init__(self, context: ControllerContext) -> None:
        config = context.config(NodeLifecycleConfig)
        self._name = context.name
        self._clock, self._client, self._recorder = context.clock, context.client, context.recorder
        self._periods = Periods(config.monitor_grace_period_s, config.startup_grace_period_s)
        self._rates = Rates(config.eviction_rate, config.secondary_eviction_rate, config.large_cluster_size_threshold)
        self._threshold = config.unhealthy_zone_threshold
        self.period_s = context.config(KubeCloudSharedConfig).node_monitor_period_s
        self._metrics = NodeMetrics(context.metrics)
        self._informers = context.informers
        self._live: Mapping[str, Lease] | None = None
        """The Leases on the API server, if they were listed in this pass."""
        self._listing = asyncio.Lock()
        self._known: dict[str, Node] = {}
        self._health: dict[str, Health] = {}
        self._steady: dict[str, ReadyNode] = {}
        self._zones: dict[str, ZoneState] = {}
        self._queues: dict[str, ZoneQueue] = {}
        self._marked: dict[str, bool] = {}
        """Of nodes that are not ready: whether their pods are marked; False where that failed."""
        self.taint_eviction: Runnable | None = None
        if not context.gates.enabled("SeparateTaintEvictionController"):
            log.info("Running TaintEvictionController as part of NodeLifecyleController")
            own = replace(context, recorder=context.recorder_for(TAINT_EVICTION))
            self.taint_eviction = taint_eviction.CONTROLLER.build(own)
        log.info("Controller will reconcile labels")
        self._nodes = context.cache(NODES)
        self._pods = context.cache(PODS)
        self._leases = context.cache(LEASES)
        self._pods.store.add_index(NODE, by_node)

    def deleted(self, node: Node) -> Keys:
        """Forget the node; no key is queued."""
        self._forget(node)
        return ()

    def moved(self, old: Pod, new: Pod) -> Keys:
        """The pod's key, if it was bound to a node."""
        return (new.key,) if new.spec.node_name and old.spec.node_name != new.spec.node_name else ()

    def _forget(self, node: Node) -> None:
        self._health.pop(node.name, None)
        self._steady.pop(node.name, None)
        self._marked.pop(node.name, None)
        for queue in self._queues.values():
            queue.remove(node.name)

    # -- taints and labels that follow conditions at once

    async def sync_node(self, key: str) -> None:
        node = self._nodes.store.get(key)
        if node is None:
            return
        taints = plan.plan_taints(node, self._clock.now())
        if taints is not None:
            reason = "NoSchedule taints follow the conditions"
            await self._client.patch(NODES, "", key, plan.taints_patch(node, taints), reason=reason)
        labels = plan.plan_labels(node)
        if labels:
            reason = "beta labels follow the stable ones"
            try:
                await self._client.patch(NODES, "", key, {"metadata": {"labels": dict(labels)}}, reason=reason)
            except RequestError as error:
                fields = {"node": kobj(node), "err": str(error)}
                log.error("Failed to reconcile labels for node, requeue it", extra={"fields": fields})
                raise

    # -- health

    async def monitor(self) -> None:
        """Check all nodes once, and measure the duration."""
        started = self._clock.monotonic()
        await self.check_nodes()
        self._metrics.all_nodes(self._clock.monotonic() - started)

    async def check_nodes(self) -> None:
        """Check all nodes once. A node whose status could not be written is not counted in its zone."""
        self._live = None
        nodes = self._nodes.store.list()
        zones: dict[str, list[Condition | None]] = {}
        others = [node for node in nodes if not self._is_unchanged(node, zones)]
        for node in others:
            if node.name not in self._known:
                await self._register(node)
            self._queue_of(node)
        for name in sorted(self._known.keys() - {node.name for node in nodes}):
            log.log(V1, "Controller observed a Node deletion", extra={"fields": {"node": KRef(name)}})
            deleted = self._known.pop(name)
            self._forget(deleted)  # again: the last check may have been under way when it was deleted
            self._emit(deleted, "RemovingNode", f"Removing Node {name} from Controller")

        async def look_at(node: Node) -> None:
            await self._check_node(node, zones)

        await for_each(self._name, others, look_at, workers=NODE_WORKERS, failed=_NOT_CHECKED)
        await self._disruption(zones, nodes)

    def _is_unchanged(self, node: Node, zones: dict[str, list[Condition | None]]) -> bool:
        """Whether a node was ready at the last check and has not changed since. Then only its Lease is recorded and it
        is counted in its zone, unless its grace period has passed.

        The condition: a check of a ready node depends on the Node, its Lease and the time only, and the last one found
        nothing to write. A kubelet writes its Node every five minutes, and then there is a whole check.
        """
        steady, health = self._steady.get(node.name), self._health.get(node.name)
        if steady is None or health is None or steady.node is not node:
            return False
        lease = self._lease(node)
        if lease is not steady.lease:
            now = Moment(self._clock.now(), self._clock.monotonic())
            health = self._health[node.name] = update_health(health, node, _renewed(lease), now)
            self._steady[node.name] = replace(steady, lease=lease)
        if past_grace_period(health, self._periods, self._clock.monotonic()):
            return False
        if steady.zone is not None:
            zones.setdefault(steady.zone, []).append(health.ready)
        self._metrics.one_node(0.0)
        return True

    def _lease(self, node: Node) -> Lease | None:
        return self._leases.store.get(f"{LEASE_NAMESPACE}/{node.name}")

    async def _register(self, node: Node) -> None:
        log.log(V1, "Controller observed a new Node", extra={"fields": {"node": kobj(node)}})
        self._known[node.name] = node
        self._emit(node, "RegisteredNode", f"Registered Node {node.name} in Controller")
        self._queue_of(node)
        await self._try_reachable(node)

    async def _check_node(self, node: Node, zones: dict[str, list[Condition | None]]) -> None:
        """Check one node, and count its Ready condition in its zone."""
        started = self._clock.monotonic()
        seen, lease = node, self._lease(node)
        try:
            node, before, ready = await self._update_health(node)
            if plan.EXCLUDED not in node.labels:
                zones.setdefault(plan.zone_of(node), []).append(ready)
            if ready is not None:
                await self._try_evict_by(node, ready)
                await self._mark_pods(node, ready, before)
                if node is seen and before == ready and plan.is_settled(node, ready):
                    zone = plan.zone_of(node) if plan.EXCLUDED not in node.labels else None
                    self._steady[node.name] = ReadyNode(node, lease, zone)
        finally:
            self._metrics.one_node(self._clock.monotonic() - started)

    async def _update_health(self, node: Node) -> tuple[Node, Condition | None, Condition | None]:
        """(the present node, its Ready condition as observed, its Ready condition after this check).

        A failed write is retried on the node's latest version. Raises ApiError, TransportError.
        """
        for attempt in range(ATTEMPTS):
            try:
                return await self._try_update_health(node)
            except RequestError as error:
                if attempt == ATTEMPTS - 1:
                    raise
                log.error("Error updating node", extra={"fields": {"node": kobj(node), "err": str(error)}})
            await self._clock.sleep(RETRY_S)
            node = await self._client.get(NODES, "", node.name)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _try_update_health(self, node: Node) -> tuple[Node, Condition | None, Condition | None]:
        now = Moment(self._clock.now(), self._clock.monotonic())
        renewed = _renewed(self._lease(node))
        known = self._health.get(node.name)
        if known is None:
            fields: dict[str, object] = {"node": kobj(node)}
            log.info("Missing timestamp for Node. Assuming now as a timestamp", extra={"fields": fields})
        health = self._health[node.name] = update_health(known, node, renewed, now)
        if health.ready is not None and (known is None or known.ready is None):
            more = {"node": kobj(node)}
            log.log(V1, "Creating timestamp entry for newly observed Node", extra={"fields": more})
        before = find(node.status.conditions, READY)
        if not past_grace_period(health, self._periods, now.monotonic):
            return node, before, before
        conditions = plan.status(node, now.wall)
        ready = find(conditions, READY)
        if ready != before and await self._is_renewed(node):
            fields = {"node": kobj(node)}
            log.log(V2, "The Lease of the node is renewed, the cache does not show it", extra={"fields": fields})
            return node, before, before
        if ready != before:
            if ready is not None and before is not None:
                fields = {
                    "node": kobj(node),
                    "duration": format_duration(now.monotonic - health.probe),
                    "nodeConditionType": READY,
                    "currentCondition": msgspec.to_builtins(before),
                }
                log.log(V2, "Node hasn't been updated", extra={"fields": fields})
            else:
                fields = {"nodeConditionType": READY, "node": kobj(node)}
                log.log(V2, "Condition of node was never updated by kubelet", extra={"fields": fields})
            changes: dict[Path, Value] = {("status", "conditions"): msgspec.to_builtins(conditions)}
            reason = "kubelet does not report"
            await writes.send(self._client, Update(NODES, node, changes, "status", reason=reason))
            self._health[node.name] = Health(health.probe, ready, health.renewed)
        return node, before, ready

    async def _is_renewed(self, node: Node) -> bool:
        """Whether a node that seems to be silent has renewed its Lease, and the cache is behind. Then its health is
        updated."""
        lease = (await self._live_leases()).get(node.name)
        now = Moment(self._clock.now(), self._clock.monotonic())
        health = update_health(self._health.get(node.name), node, _renewed(lease), now)
        if past_grace_period(health, self._periods, now.monotonic):
            return False
        self._health[node.name] = health
        return True

    async def _live_leases(self) -> Mapping[str, Lease]:
        """The Leases on the API server by node, listed once in a pass. None if that fails: the cache decides."""
        async with self._listing:
            if self._live is None:
                try:
                    found = await self._informers.list_now(LEASES, LEASE_NAMESPACE)
                    self._live = {lease.name: lease for lease in found.items}
                except RequestError as error:
                    log.log(V2, "Leases cannot be listed, the cache decides", extra={"fields": {"err": str(error)}})
                    self._live = {}
            return self._live

    async def _try_evict_by(self, node: Node, ready: Condition) -> None:
        """``_evict_by`` with errors logged: the next check retries, and the node's pods are handled all the same."""
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
        """Queue a node for the taint of its Ready condition. If it has the other taint, they are swapped at once."""
        keys = plan.plan_eviction(ready)
        if keys is None:
            await self._reachable(node)
            return
        key, other = keys
        if plan.has_taint(node, other):
            await self._taint(node, {key}, {other})
            return
        queue = self._queue_of(node)
        if not plan.has_taint(node, key):
            queue.remove(node.name)
        if queue.add(node.name):
            fields = {"node": kobj(node), "timeStamp": format_time(self._clock.now())}
            log.log(V2, _QUEUED[key], extra={"fields": fields})

    async def _reachable(self, node: Node) -> None:
        """Remove both eviction taints, and remove the node from its queue."""
        if await self._taint(node, set(), {NOT_READY, UNREACHABLE}):
            log.log(V2, "Node is healthy again, removed all taints", extra={"fields": {"node": kobj(node)}})
        self._queue_of(node).remove(node.name)

    async def _try_reachable(self, node: Node) -> None:
        """``_reachable`` with errors logged: the next check retries."""
        try:
            await self._reachable(node)
        except RequestError as error:
            log.error("Failed to remove taints from Node", extra={"fields": {"node": kobj(node), "err": str(error)}})

    async def _taint(self, node: Node, add: set[str], remove: set[str]) -> bool:
        """Whether the node has been given other taints."""
        for attempt in range(ATTEMPTS):
            taints = plan.swap_taints(node, add, remove, plan.NO_EXECUTE, self._clock.now())
            if tuple(taints) == node.spec.taints:
                return False
            reason = f"node is {'not ready' if NOT_READY in add else 'unreachable'}" if add else "node is healthy again"
            try:
                await self._client.patch(NODES, "", node.name, plan.taints_patch(node, taints), reason=reason)
                return True
            except NotFound:
                return False
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
            node = await self._client.get(NODES, "", node.name)
        raise AssertionError("unreachable: the last attempt returns or raises")

    # -- pods of silent nodes

    async def _mark_pods(self, node: Node, ready: Condition, before: Condition | None) -> None:
        """Mark the pods of a silent node (one that does not report itself as not ready) as not ready.

        If that fails for a pod, the next check retries, whatever the node reports by then. Pods are also marked on
        nodes that were silent when this manager started, since the previous one may have ended before it marked them.
        Upstream marks pods only when a ready node stops being ready; accordingly nothing happens for a node that
        reported itself as not ready and then falls silent.
        """
        if ready.status == "True":
            self._marked.pop(node.name, None)
            return
        lost = before is not None and before.status == "True"
        if lost:
            fields = {"status": "NodeNotReady", "node": node.name}
            log.log(V2, "Recording status change event message for node", extra={"fields": fields})
            message = f"Node {node.name} status is now: NodeNotReady"
            self._recorder.emit(plan.node_event(node, "NodeNotReady", message))
        if lost or not self._marked.setdefault(node.name, ready.status != "Unknown"):
            self._marked[node.name] = False
            log.log(V2, "Update ready status of pods on node", extra={"fields": {"node": kobj(node)}})
            try:
                await self._mark(self._pods.store.by_index(NODE, node.name))
            except RequestError as error:
                more = {"node": node.name, "err": str(error)}
                text = "Unable to mark all pods NotReady on node; queuing for retry"
                log.error(text, extra={"fields": more})
                raise
            self._marked[node.name] = True

    async def sync_pod(self, key: str) -> None:
        """Mark a pod as not ready that was bound to a node which is not ready."""
        pod = self._pods.store.get(key)
        health = self._health.get(pod.spec.node_name) if pod is not None else None
        if pod is not None and health is not None and health.ready is not None and health.ready.status != "True":
            try:
                await self._mark([pod])
            except RequestError as error:
                fields = {"pod": kobj(pod), "node": KRef(pod.spec.node_name), "err": str(error)}
                log.info("Unable to mark pod NotReady on node", extra={"fields": fields})
                raise

    async def _mark(self, pods: list[Pod]) -> None:
        now = self._clock.now()
        marking = (mark_not_ready(self._client, self._recorder, pod, now) for pod in pods)
        for failed in await asyncio.gather(*marking, return_exceptions=True):
            if failed is not None:
                raise failed

    # -- zones

    async def _disruption(self, zones: dict[str, list[Condition | None]], nodes: list[Node]) -> None:
        states: dict[str, ZoneState] = {}
        for zone, ready in zones.items():
            bad, states[zone] = plan.zone_state(ready, self._threshold)
            self._metrics.zone(zone, len(ready), bad)
        for zone in sorted(self._zones.keys() - zones.keys()):
            self._metrics.zone(zone, 0, 0)
            self._queues.pop(zone, None)
        if not states:
            self._zones = {}
            return
        sizes = {zone: len(ready) for zone, ready in zones.items()}
        change = plan.plan_zones(self._zones, states, sizes, self._rates)
        for zone, state in change.states.items():
            if self._zones.get(zone, ZoneState.INITIAL) is not state:
                fields = {"zone": zone, "newState": state.value}
                log.info("Controller detected that zone is now in new state", extra={"fields": fields})
        self._zones = change.states
        for zone, rate in change.rates.items():
            self._queues.setdefault(zone, ZoneQueue(rate)).set_rate(rate, self._clock.monotonic())
        if change.let_off:
            log.info("Controller detected that all Nodes are not-Ready. Entering master disruption mode")
            for node in nodes:
                await self._try_reachable(node)
        if change.restart:
            log.info("Controller detected that some Nodes are Ready. Exiting master disruption mode")
            now = self._clock.monotonic()
            for name, health in self._health.items():
                self._health[name] = Health(now, health.ready, health.renewed)

    def _queue_of(self, node: Node) -> ZoneQueue:
        zone = plan.zone_of(node)
        queue = self._queues.get(zone)
        if queue is None:
            log.info("Initializing eviction metric for zone", extra={"fields": {"zone": zone}})
            queue = self._queues[zone] = ZoneQueue(self._rates.normal)
            self._metrics.evicted(zone, 0)
        return queue

    async def evict(self) -> None:
        """Taint queued nodes, at each zone's rate."""
        for zone, queue in tuple(self._queues.items()):  # a zone may come while a node is tainted
            await self._evict_next(zone, queue)

    def eviction_pause_s(self) -> float:
        """Seconds until the next call of ``evict``."""
        return TAINT_PERIOD_S if any(self._queues.values()) else self.period_s / 5

    async def _evict_next(self, zone: str, queue: ZoneQueue) -> None:
        while (name := queue.next(self._clock.monotonic())) is not None:
            node = self._nodes.store.get(name)
            ready = find(node.status.conditions, READY) if node is not None else None
            keys = plan.plan_eviction(ready) if ready is not None else None
            if node is None or keys is None:
                if node is None:
                    log.info("Node no longer present in nodeLister", extra={"fields": {"node": KRef(name)}})
                queue.done(name)
                continue
            key, other = keys
            try:
                await self._taint(node, {key}, {other})
            except RequestError as error:
                text = f"unable to taint {key} unresponsive Node {quote(name)}: {error}"
                log.error("Unhandled Error", extra={"fields": {"logger": "UnhandledError", "err": text}})
                queue.later(name, self._clock.monotonic() + TAINT_PERIOD_S)
                continue
            queue.done(name)
            self._metrics.evicted(zone, 1)

    def _emit(self, node: Node, reason: str, message: str) -> None:
        fields = {"event": message, "node": kobj(node)}
        log.log(V2, "Recording event message for node", extra={"fields": fields})
        self._recorder.emit(plan.node_event(node, reason, f"Node {node.name} event: {message}"))


def _renewed(lease: Lease | None) -> str:
    """The renewTime of a Lease; "" if there is none."""
    return (lease.spec.renew_time or "") if lease is not None else ""


CONTROLLER = Controller(
    NodeLifecycleController,
    (
        Queue(
            "node_lifecycle_controller",
            Watch(NODES, changed=own_key, deleted=NodeLifecycleController.deleted),
            sync=NodeLifecycleController.sync_node,
            failures=Failures(retried="Failed to taint NoSchedule on node, requeue it", key="node", ref=True),
            workers=NODE_WORKERS,
        ),
        Queue(
            "node_lifecycle_controller_pods",
            Watch(PODS, added=only(is_placed), updated=NodeLifecycleController.moved),
            sync=NodeLifecycleController.sync_pod,
            workers=POD_WORKERS,
        ),
    ),
    reads=(Watch(LEASES, scope=Scope(namespace=LEASE_NAMESPACE)),),
    passes=(
        Periodic(
            NodeLifecycleController.monitor,
            pause_s=lambda controller: controller.period_s,
            failed="Error monitoring node health",
        ),
        Periodic(NodeLifecycleController.evict, pause_s=NodeLifecycleController.eviction_pause_s),
    ),
    beside=lambda controller: () if controller.taint_eviction is None else (controller.taint_eviction,),
)
