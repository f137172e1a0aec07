"""Deletes pods from nodes whose NoExecute taints they do not tolerate: a controller, or a part of node-lifecycle's.

upstream: pkg/controller/tainteviction
"""

import logging

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import NODES, PODS, Node, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.shared.live import Live
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, StartLines, Watch, only, own_key
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.meta import split_key
from kcm_cli.planning import taint_eviction as rules
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.planning.pod_status import DISRUPTION_TARGET, status_patch
from kcm_cli.planning.pods import is_placed
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.runtime.store import NODE, by_node
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

NAME = "taint-eviction-controller"
WORKERS = 8
PODS_AT_ONCE = 100
AGAIN_S = 5.0
"""When to look again at a pod that stays, although the cache shows a taint that it does not tolerate."""
_DISRUPTED: Doc = {
    "type": DISRUPTION_TARGET,
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class Eviction(msgspec.Struct, frozen=True):
    """A scheduled deletion of a pod. ``due``: monotonic seconds. upstream: TimedWorker.

    marked: whether an Event has announced it.
    """

    uid: str
    due: float
    marked: bool = False


class TaintEvictionController:
    """Keys are pods, and names of nodes. A node whose taints change queues its pods; a pod is queued again when its
    toleration expires."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock, self._client, self._recorder = context.clock, context.client, context.recorder
        self._tracks_generation = context.gates.enabled("PodObservedGenerationTracking")
        self._comparisons = context.gates.enabled("TaintTolerationComparisonOperators")
        self._scheduled: dict[str, Eviction] = {}
        _, self._queue = context.queues
        self._nodes = context.cache(NODES)
        self._live = Live(self._client, self._clock, NODES, self._nodes.store)
        self._pods = context.cache(PODS)
        self._pods.store.add_index(NODE, by_node)
        self._deletions = context.metrics.counter(
            "taint_eviction_controller_pod_deletions_total", "Number of evicted pods."
        ).labels()
        self._latency = context.metrics.histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Seconds between the time at which a pod had to go and its deletion.",
            (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240),
        ).labels()

    async def sync_node(self, key: str) -> None:
        """Queue the pods of a node whose taints changed. A deleted node cancels no evictions."""
        if self._nodes.store.get(key) is None:
            return
        async for pod in in_turns(self._pods.store.by_index(NODE, key), PODS_AT_ONCE):
            self._queue.add(pod.key)

    async def sync(self, key: str) -> float | None:
        pod = self._pods.store.get(key)
        scheduled = self._scheduled.get(key)
        if pod is None or (scheduled is not None and pod.uid != scheduled.uid):
            self._cancel(key)
            scheduled = None
        if pod is None:
            return None
        eviction = self._eviction(pod, scheduled)
        if eviction is None:
            self._cancel(key)
            return None
        self._scheduled[key] = eviction  # kept until the deletion succeeds, so that a retry does not wait again
        now = self._clock.monotonic()
        if eviction.due > now:
            return eviction.due - now
        if not eviction.marked:
            if not await self._has_to_leave(pod):
                if scheduled is None:
                    del self._scheduled[key]  # nobody was told
                self._cancel(key)
                return AGAIN_S
            self._scheduled[key] = replace(eviction, marked=True)
            self._emit(key, "Marking for deletion Pod")
        fields = {"controller": NAME, "pod": kobj(pod)}
        log.info("Deleting pod", extra={"fields": fields})
        await self._evict(pod, eviction)
        self._scheduled.pop(key, None)
        return None

    def _eviction(self, pod: Pod, scheduled: Eviction | None) -> Eviction | None:
        """The eviction of a pod. A scheduled one is kept, unless the pod has to be deleted at once.

        As upstream: a later taint with a shorter toleration does not bring it forward, and the node's deletion does not
        cancel it.
        """
        node = self._nodes.store.get(pod.spec.node_name) if pod.spec.node_name else None
        if node is None:
            return scheduled
        found = rules.plan(rules.executing(node), pod.spec.tolerations, comparisons=self._comparisons)
        now = self._clock.monotonic()
        if found is not None and not found.tolerated and scheduled is None:
            fields = {"pod": pod.key, "node": kobj(node)}
            log.log(V2, "Not all taints are tolerated after update for pod on node", extra={"fields": fields})
        if found is None or (scheduled is not None and (found.tolerated or scheduled.due <= now)):
            return scheduled if found is not None else None
        self._cancel(pod.key)
        return Eviction(pod.uid, now + found.after_s)

    async def _has_to_leave(self, pod: Pod) -> bool:
        """Whether a pod has to be deleted by the taints that its node has on the API server.

        The cache may still show one that was removed just before the pod was bound. A node that is gone cancels
        nothing.
        """
        node = await self._live.find(pod.spec.node_name)
        if node is None:
            return True
        return rules.plan(rules.executing(node), pod.spec.tolerations, comparisons=self._comparisons) is not None

    async def _evict(self, pod: Pod, eviction: Eviction) -> None:
        try:
            live = await self._client.get(PODS, pod.namespace, pod.name)
            if live.uid != pod.uid:
                return
            now = self._clock.now()
            patch = status_patch(live, _DISRUPTED, now, tracks_generation=self._tracks_generation)
            if patch is not None:
                await writes.send(self._client, patch)
            reason = f"node {live.spec.node_name} has a NoExecute taint"
            await self._client.delete(PODS, pod.namespace, pod.name, uid=pod.uid, reason=reason)
        except NotFound:
            return
        except Conflict:
            if await self._replaced(pod):
                return
            raise  # not because of the uid: admission webhooks may answer with Conflict, too
        self._deletions.inc()
        self._latency.observe(self._clock.monotonic() - eviction.due)

    async def _replaced(self, pod: Pod) -> bool:
        """Whether the API server does not have this pod: it was deleted, or recreated under its name."""
        live = await self._client.find(PODS, pod.namespace, pod.name)
        return live is None or live.uid != pod.uid

    def _cancel(self, key: str) -> None:
        if self._scheduled.pop(key, None) is not None:
            self._emit(key, "Cancelling deletion of Pod")

    def _emit(self, key: str, what: str) -> None:
        ref = EventRef(PODS.api_version, PODS.kind, *split_key(key), "")
        self._recorder.emit(Notice(ref, "Normal", "TaintManagerEviction", f"{what} {key}"))

    def tainted(self, old: Node, new: Node) -> Keys:
        """The node's name if its NoExecute taints changed."""
        return (new.name,) if rules.executing(old) != rules.executing(new) else ()

    def moved(self, old: Pod, new: Pod) -> Keys:
        """The pod's key if its node or its tolerations changed."""
        same = old.spec.node_name == new.spec.node_name and old.spec.tolerations == new.spec.tolerations
        return () if same else (new.key,)


TAINT_EVICTION = Controller(
    TaintEvictionController,
    (
        Queue(
            "noexec_taint_node",
            Watch(NODES, own_key, updated=TaintEvictionController.tainted),
            sync=TaintEvictionController.sync_node,
            workers=WORKERS,
        ),
        Queue(
            "noexec_taint_pod",
            Watch(PODS, added=only(is_placed), updated=TaintEvictionController.moved, deleted=own_key),
            sync=TaintEvictionController.sync,
            workers=WORKERS,
        ),
    ),
    announces=(StartLines("Starting", "Shutting down controller", (("controller", NAME),)),),
)
