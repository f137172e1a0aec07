"""pod-garbage-collector-controller: every 20 s, deletes pods that have ended or lost their node.

A node counts as deleted after it has been missing from the cache for 40 s and the API server does not have it.

upstream: pkg/controller/podgc
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kcm_cli.api.core import NODES, PODS, Node, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.pod_garbage_collector import plan
from kcm_cli.controllers.pod_garbage_collector.config import PodGarbageCollectorConfig
from kcm_cli.controllers.pod_garbage_collector.plan import Reason
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Periodic, starting
from kcm_cli.engine.passes import for_each
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.planning.pod_status import DISRUPTION_TARGET, status_patch
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime import causes
from kcm_cli.runtime.store import by_node
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

PERIOD_S = 20.0
QUARANTINE_S = 40.0
PARALLEL = 50
CHUNK = 500
"""Pods that are checked, or sorted, before other tasks run."""
NODE, PHASE = "node", "phase"
_ORPHANED: Doc = {
    "type": DISRUPTION_TARGET,
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


_LINES = {
    Reason.TERMINATED: ("", "", "Failed to delete terminated pod"),
    Reason.OUT_OF_SERVICE: ("", "", "Failed to delete terminating pod on out-of-service node"),
    Reason.ORPHANED: (
        "Found orphaned Pod assigned to the Node, deleting",
        "Forced deletion of orphaned Pod succeeded",
        "Failed to delete orphaned pod",
    ),
    Reason.UNSCHEDULED: (
        "Found unscheduled terminating Pod not assigned to any Node, deleting",
        "Forced deletion of unscheduled terminating Pod succeeded",
        "Failed to delete unscheduled terminating pod",
    ),
}
"""What is logged before, after, and on failure."""


class PodGarbageCollector:
    """Sweeps over all pods. upstream: PodGCController.

    queue: names of nodes that pods refer to and that have been missing for QUARANTINE_S. A sweep takes them.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._name = context.name
        self._clock = context.clock
        self.queue = context.queue("orphaned_pods_nodes")
        self._client = context.client
        self._threshold = context.config(PodGarbageCollectorConfig).terminated_pod_threshold
        self._tracks_generation = context.gates.enabled("PodObservedGenerationTracking")
        self._pods = context.cache(PODS)
        self._pods.store.add_index(NODE, by_node)
        self._pods.store.add_index(PHASE, plan.phase_index)
        self._nodes = context.cache(NODES)
        self._nodes.listen(on_delete=self._node_deleted)
        self._causes = context.causes
        self._gone: dict[str, causes.Cause] = {}
        """Why pods are orphaned: the deletion of their node, by its name."""
        labels = ("namespace", "reason")
        self._deleted = context.metrics.counter(
            "pod_gc_collector_force_delete_pods_total", "Number of pods deleted by force.", labels=labels
        )
        self._failed = context.metrics.counter(
            "pod_gc_collector_force_delete_pod_errors_total", "Number of failed deletions by force.", labels=labels
        )

    async def sweep(self) -> None:
        """Delete all pods that ``plan`` selects. Failures are logged and counted; the next sweep retries."""
        terminated, out_of_service, unscheduled = _Oldest(), _Oldest(), list[Pod]()
        async for pod in in_turns(self._pods.store.by_index(PHASE, plan.ENDED), CHUNK):
            terminated.add(pod)
        async for pod in in_turns(self._pods.store.by_index(PHASE, plan.LEAVING), CHUNK):
            reason = plan.plan(pod, self._nodes.store.get)
            if reason is Reason.OUT_OF_SERVICE:
                out_of_service.add(pod)
            elif reason is Reason.UNSCHEDULED:
                unscheduled.append(pod)
        if self._threshold > 0:
            surplus = max(0, terminated.count - self._threshold)
            if surplus:
                log.info("Garbage collecting pods", extra={"fields": {"numPods": surplus}})
            await self._remove(terminated.first(surplus), Reason.TERMINATED)
        await self._remove(await self._on_shut_down_nodes(out_of_service), Reason.OUT_OF_SERVICE)
        for node, pods in (await self._orphaned()).items():
            with self._because(node):
                await self._remove(pods, Reason.ORPHANED, _ORPHANED)
        await self._remove(unscheduled, Reason.UNSCHEDULED)

    def _node_deleted(self, node: Node) -> None:
        if self._causes is not None and (cause := causes.told()) is not None:
            self._gone[node.name] = cause

    @contextmanager
    def _because(self, node: str) -> Iterator[None]:
        """What is written within is recorded as work for a node that was deleted."""
        ring, cause, sweep = self._causes, self._gone.get(node), causes.working()
        if ring is None or cause is None:
            yield
            return
        found = causes.Causes([cause])
        causes.set_working(
            causes.Work(
                controller=self._name, queue="", kind="Node", key=node, at=ring.now(), causes=found, note=ring.note
            )
        )
        try:
            yield
        finally:
            if (work := causes.working()) is not None:
                ring.ended(work)
            causes.set_working(sweep)

    async def _orphaned(self) -> dict[str, list[Pod]]:
        """The pods of nodes that have been missing for QUARANTINE_S and do not exist on the API server.

        They are those from before the API server was asked: what is bound later is on a new node of this name.
        """
        found = {}
        for _ in range(len(self.queue)):
            node = await self.queue.get()
            pods = self._pods.store.by_index(NODE, node)
            if await self._is_deleted(node):
                found[node] = pods
        orphaned = [n for n in self._pods.store.index_values(NODE) if n and self._nodes.store.get(n) is None]
        for name in orphaned:
            self.queue.add_after(name, QUARANTINE_S)
        self._gone = {name: self._gone[name] for name in (*found, *orphaned) if name in self._gone}
        return found

    async def _is_deleted(self, node: str) -> bool:
        try:
            return self._nodes.store.get(node) is None and await self._client.find(NODES, "", node) is None
        except RequestError as error:
            _not_read(node, error)
            return False  # the next sweep queues it again if it still has pods
        finally:
            self.queue.done(node)

    async def _on_shut_down_nodes(self, pods: "_Oldest") -> list[Pod]:
        """Those pods whose node is out of service by the API server, too: its pods may run again since the taint that
        the cache shows was removed. Each node is read once, PARALLEL at a time."""
        chosen, shut_down = list(pods.first(pods.count)), set[str]()

        async def read(node: Node) -> None:
            if await self._is_shut_down(node.name):
                shut_down.add(node.name)

        names = sorted({pod.spec.node_name for pod in chosen})
        nodes = [node for name in names if (node := self._nodes.store.get(name)) is not None]
        await for_each(self._name, nodes, read, workers=PARALLEL)
        return [pod for pod in chosen if pod.spec.node_name in shut_down]

    async def _is_shut_down(self, node: str) -> bool:
        try:
            return plan.is_shut_down(await self._client.find(NODES, "", node))
        except RequestError as error:
            _not_read(node, error)
            return False

    async def _remove(self, pods: Iterable[Pod], reason: Reason, condition: Doc | None = None) -> None:
        """Delete pods, PARALLEL at a time, but for those that only finalizers keep."""
        left = (pod for pod in pods if not plan.is_held(pod))
        await for_each(self._name, left, lambda pod: self._remove_one(pod, reason, condition), workers=PARALLEL)

    async def _remove_one(self, pod: Pod, reason: Reason, condition: Doc | None) -> None:
        self._deleted.labels(pod.namespace, reason.value).inc()
        begun, done, failed = _LINES[reason]
        fields: dict[str, object] = {"pod": kobj(pod)}
        if begun:
            node = {"node": KRef(pod.spec.node_name)} if reason is Reason.ORPHANED else {}
            log.log(V2, begun, extra={"fields": {**fields, **node}})
        try:
            await self._fail_and_delete(pod, reason, condition)
        except RequestError as error:  # also NotFound, or another pod of this name
            self._failed.labels(pod.namespace, reason.value).inc()
            log.error(failed, extra={"fields": {**fields, "err": str(error)}})
            return
        if done:
            log.info(done, extra={"fields": fields})

    async def _fail_and_delete(self, pod: Pod, reason: Reason, condition: Doc | None) -> None:
        """Mark a pod that has not ended as Failed, so that its owner counts it, and delete it."""
        log.info("PodGC is force deleting Pod", extra={"fields": {"pod": kobj(pod)}})
        patch = status_patch(pod, condition, self._clock.now(), failed=True, tracks_generation=self._tracks_generation)
        if patch is not None and pod.status.phase not in ("Succeeded", "Failed"):
            await writes.send(self._client, patch)
        await self._client.delete(
            PODS, pod.namespace, pod.name, uid=pod.uid, grace_s=0, reason=plan.word(reason, pod, self._threshold)
        )


def _not_read(node: str, error: RequestError) -> None:
    log.error("Error while getting node", extra={"fields": {"node": KRef(node), "err": str(error)}})


class _Oldest:
    """Pods by age, sorted in chunks of CHUNK while they are added."""

    def __init__(self) -> None:
        self.count = 0
        self._runs: list[list[Pod]] = [[]]

    def add(self, pod: Pod) -> None:
        self.count += 1
        run = self._runs[-1]
        run.append(pod)
        if len(run) == CHUNK:
            run.sort(key=plan.age)
            self._runs.append([])

    def first(self, count: int) -> Iterator[Pod]:
        """The oldest pods. Call it last: no pod may be added afterwards."""
        self._runs[-1].sort(key=plan.age)
        return plan.oldest_first(self._runs, count)


CONTROLLER = Controller(
    PodGarbageCollector,
    passes=(Periodic(PodGarbageCollector.sweep, pause_s=lambda collector: PERIOD_S),),
    reads=(PODS, NODES),
    announces=starting("GC controller"),
)
