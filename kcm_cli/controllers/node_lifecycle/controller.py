"""node-lifecycle-controller: taints nodes that stop reporting, and marks their pods as not ready.

It has three loops. Every --node-monitor-period all nodes are checked: their ``health``, the ``taints`` that follow from
it, and their ``pods``. Changed nodes get the NoSchedule taints of their conditions at once. Every 100 ms queued nodes
get a NoExecute taint, at their zone's rate. With the gate SeparateTaintEvictionController off, this controller runs the
eviction of pods by taints, too.

upstream: pkg/controller/nodelifecycle
"""

import logging

from msgspec.structs import replace

from kcm_cli.api.coordination import LEASES
from kcm_cli.api.core import NODES, PODS, Condition, Node, Pod
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.component.logs import V1, V2
from kcm_cli.controllers.node_lifecycle import plan
from kcm_cli.controllers.node_lifecycle.config import NodeLifecycleConfig
from kcm_cli.controllers.node_lifecycle.health import NodeHealth
from kcm_cli.controllers.node_lifecycle.metrics import NodeMetrics
from kcm_cli.controllers.node_lifecycle.plan import Periods, Rates, ZoneState
from kcm_cli.controllers.node_lifecycle.pods import PodMarks
from kcm_cli.controllers.node_lifecycle.taints import TAINT_PERIOD_S, EvictionTaints
from kcm_cli.controllers.shared import taint_eviction
from kcm_cli.engine import writes
from kcm_cli.engine.building import build
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch, only, own_key, starting
from kcm_cli.engine.passes import ObjectFailed, for_each
from kcm_cli.engine.worker import Logged
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.planning.actions import Patch
from kcm_cli.planning.pods import is_placed
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Scope
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

NODE_WORKERS, POD_WORKERS = 8, 4
NODES_AT_ONCE = 500
_UNTAINTED = "Failed to taint NoSchedule on node, requeue it"
_UNLABELLED = "Failed to reconcile labels for node, requeue it"
_NOT_CHECKED = ObjectFailed("Update health of Node from Controller error, Skipping - no pods will be evicted", "node")


class NodeLifecycleController:
    """Keys are names of nodes, and namespace/name of pods."""

    def __init__(self, context: ControllerContext) -> None:
        config = context.config(NodeLifecycleConfig)
        self._name = context.name
        self._clock, self._client, self._recorder = context.clock, context.client, context.recorder
        self._rates = Rates(config.eviction_rate, config.secondary_eviction_rate, config.large_cluster_size_threshold)
        self._threshold = config.unhealthy_zone_threshold
        self.period_s = context.config(KubeCloudSharedConfig).node_monitor_period_s
        self._metrics = NodeMetrics(context.metrics)
        self._known: dict[str, Node] = {}
        self._zones: dict[str, ZoneState] = {}
        self._health = NodeHealth(context, Periods(config.monitor_grace_period_s, config.startup_grace_period_s))
        self._taints = EvictionTaints(context, self._metrics, self._rates.normal)
        self._marks = PodMarks(context)
        self.taint_eviction: Runnable | None = None
        if not context.gates.enabled("SeparateTaintEvictionController"):
            log.info("Running TaintEvictionController as part of NodeLifecyleController")
            own = replace(context, recorder=context.recorder_for(taint_eviction.NAME))
            self.taint_eviction = build(taint_eviction.TAINT_EVICTION, own)
        log.info("Controller will reconcile labels")
        self._nodes = context.cache(NODES)
        self._pods = context.cache(PODS)

    def deleted(self, node: Node) -> Keys:
        """Forget the node; no key is queued."""
        self._forget(node)
        return ()

    def moved(self, old: Pod, new: Pod) -> Keys:
        """The pod's key, if it was bound to a node."""
        return (new.key,) if new.spec.node_name and old.spec.node_name != new.spec.node_name else ()

    def _forget(self, node: Node) -> None:
        for memory in (self._health, self._taints, self._marks):
            memory.forget(node.name)

    # -- changed nodes and pods

    async def sync_node(self, key: str) -> None:
        """Write the NoSchedule taints and the deprecated labels of a node. A failure of one does not stop the other."""
        node = self._nodes.store.get(key)
        if node is None:
            return
        untainted = await self._write(node, plan.plan_taints(node, self._clock.now()), _UNTAINTED)
        unlabelled = await self._write(node, plan.plan_labels(node), _UNLABELLED)
        if failed := untainted or unlabelled:
            raise Logged(failed) from failed

    async def _write(self, node: Node, change: Patch | None, message: str) -> RequestError | None:
        """Write a change, if there is one. Returns the error after logging it: at V2 if the node has changed or is
        gone."""
        if change is not None:
            try:
                await writes.send(self._client, change)
            except RequestError as error:
                level = V2 if isinstance(error, Conflict | NotFound) else logging.ERROR
                log.log(level, message, extra={"fields": {"node": kobj(node), "err": str(error)}})
                return error
        return None

    async def sync_pod(self, key: str) -> None:
        """Mark a pod as not ready that was bound to a node which is not ready."""
        pod = self._pods.store.get(key)
        if pod is not None and self._health.is_bad(pod.spec.node_name):
            try:
                await self._marks.mark([pod])
            except RequestError as error:
                fields = {"pod": kobj(pod), "node": KRef(pod.spec.node_name), "err": str(error)}
                log.info("Unable to mark pod NotReady on node", extra={"fields": fields})
                raise Logged(error) from error

    # -- health

    async def monitor(self) -> None:
        """Check all nodes once, and measure the duration."""
        started = self._clock.monotonic()
        await self.check_nodes()
        self._metrics.all_nodes(self._clock.monotonic() - started)

    async def check_nodes(self) -> None:
        """Check all nodes once. A node whose status could not be written is not counted in its zone."""
        self._health.begin()
        nodes = self._nodes.store.list()
        zones: dict[str, list[Condition | None]] = {}
        others: list[Node] = []
        async for node in in_turns(nodes, NODES_AT_ONCE):
            unchanged = self._health.unchanged(node)
            if unchanged is None:
                others.append(node)
                continue
            zone, ready = unchanged
            if zone is not None:
                zones.setdefault(zone, []).append(ready)
            self._metrics.one_node(0.0)
        async for node in in_turns(others, NODES_AT_ONCE):
            if node.name not in self._known:
                await self._register(node)
            self._taints.queue_of(node)
        for name in sorted(self._known.keys() - {node.name for node in nodes}):
            log.log(V1, "Controller observed a Node deletion", extra={"fields": {"node": KRef(name)}})
            deleted = self._known.pop(name)
            self._forget(deleted)  # again: the last check may have been under way when it was deleted
            self._emit(deleted, "RemovingNode", f"Removing Node {name} from Controller")

        async def look_at(node: Node) -> None:
            await self._check_node(node, zones)

        await for_each(self._name, others, look_at, workers=NODE_WORKERS, failed=_NOT_CHECKED)
        await self._disruption(zones, nodes)

    async def _register(self, node: Node) -> None:
        log.log(V1, "Controller observed a new Node", extra={"fields": {"node": kobj(node)}})
        self._known[node.name] = node
        self._emit(node, "RegisteredNode", f"Registered Node {node.name} in Controller")
        self._taints.queue_of(node)
        await self._taints.reachable(node)

    async def _check_node(self, node: Node, zones: dict[str, list[Condition | None]]) -> None:
        """Check one node, and count its Ready condition in its zone."""
        started = self._clock.monotonic()
        seen, lease = node, self._health.lease(node)
        try:
            node, before, ready = await self._health.update(node)
            if plan.EXCLUDED not in node.labels:
                zones.setdefault(plan.zone_of(node), []).append(ready)
            if ready is not None:
                await self._taints.follow(node, ready)
                await self._marks.follow(node, ready, before)
                if node is seen and before == ready and plan.is_settled(node, ready):
                    zone = plan.zone_of(node) if plan.EXCLUDED not in node.labels else None
                    self._health.settled(node, lease, zone)
        finally:
            self._metrics.one_node(self._clock.monotonic() - started)

    # -- zones

    async def _disruption(self, zones: dict[str, list[Condition | None]], nodes: list[Node]) -> None:
        states: dict[str, ZoneState] = {}
        for zone, ready in zones.items():
            bad, states[zone] = plan.zone_state(ready, self._threshold)
            self._metrics.zone(zone, len(ready), bad)
        for zone in sorted(self._zones.keys() - zones.keys()):
            self._metrics.zone(zone, 0, 0)
            self._taints.drop(zone)
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
            self._taints.set_rate(zone, rate)
        if change.let_off:
            log.info("Controller detected that all Nodes are not-Ready. Entering master disruption mode")
            await self._taints.let_off(nodes)
        if change.restart:
            log.info("Controller detected that some Nodes are Ready. Exiting master disruption mode")
            self._health.restart()

    async def evict(self) -> None:
        """Taint queued nodes, at each zone's rate."""
        await self._taints.evict()

    def eviction_pause_s(self) -> float:
        """Seconds until the next call of ``evict``."""
        return TAINT_PERIOD_S if self._taints.waiting else self.period_s / 5

    def _emit(self, node: Node, reason: str, message: str) -> None:
        fields = {"event": message, "node": kobj(node)}
        log.log(V2, "Recording event message for node", extra={"fields": fields})
        self._recorder.emit(plan.node_event(node, reason, f"Node {node.name} event: {message}"))


CONTROLLER = Controller(
    NodeLifecycleController,
    (
        Queue(
            "node_lifecycle_controller",
            Watch(NODES, changed=own_key, deleted=NodeLifecycleController.deleted),
            sync=NodeLifecycleController.sync_node,
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
    announces=starting("node controller"),
)
