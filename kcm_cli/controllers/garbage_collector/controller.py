"""garbage-collector-controller: deletes what has lost all its owners, orphans what is let go, and waits for what
blocks a deletion in the foreground.

Events of all resources change a graph; what may have to go is queued by uid. Nothing is deleted because a cache
does not know its owner: the server is asked, once per owner, and the answer kept. What the cache says of the object
itself goes along as a precondition, so that a delete on an old view is refused and looked at again.

upstream: pkg/controller/garbagecollector
"""

import asyncio
import logging

from kcm_cli.component.clock import Clock
from kcm_cli.controllers.garbage_collector import plan
from kcm_cli.controllers.garbage_collector.config import GarbageCollectorConfig
from kcm_cli.controllers.garbage_collector.dump import dot
from kcm_cli.controllers.garbage_collector.graph import FOREGROUND, ORPHAN, Effects, Graph, Identity, Node
from kcm_cli.controllers.garbage_collector.monitors import PERIOD_S, Monitors
from kcm_cli.controllers.garbage_collector.objects import Objects, OwnerOfAnotherScope, owner_identity
from kcm_cli.controllers.garbage_collector.plan import Disown, Keep, Owner, Remove
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import Loop, Together
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference
from kcm_cli.machinery.recent import Recent
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.mapper import Mapper

log = logging.getLogger(__name__)

SYNC_TIMEOUT_S = 30.0
QPS_TIMES = 2
"""Of --kube-api-qps: a deletion takes two requests. Upstream: cmd/kube-controller-manager/app/core.go."""
_POLL_S = 0.1


def build(context: ControllerContext) -> Runnable | None:
    config = context.config(GarbageCollectorConfig)
    if not config.enabled:
        return None
    ignored = frozenset(config.ignored_resources)
    collector = GarbageCollector(context, ignored)
    context.debug["graph"] = lambda path, query: ("text/vnd.graphviz", dot(collector.graph, query.get("uid", "")))
    workers = tuple(
        context.worker(queue, sync, count=config.concurrent_syncs, waits_for=())
        for queue, sync in (
            (collector.to_delete, collector.try_delete),
            (collector.to_orphan, collector.try_orphan),
        )
    )
    discovery = Loop(name=context.name, clock=context.clock, step=collector.refresh, pause_s=lambda: PERIOD_S)
    return Together((discovery, _Delayed(collector, workers)))


class _Delayed:
    """The workers, once the graph is complete, or after a while all the same."""

    def __init__(self, collector: "GarbageCollector", workers: tuple[Runnable, ...]) -> None:
        self._collector = collector
        self._workers = workers

    async def run(self) -> None:
        await self._collector.complete(SYNC_TIMEOUT_S)
        await Together(self._workers).run()


class GarbageCollector:
    """Keys are uids of graph nodes."""

    def __init__(self, context: ControllerContext, ignored: frozenset[tuple[str, str]]) -> None:
        self._clock: Clock = context.clock
        self._recorder = context.recorder
        self._absent = Recent()
        self.graph = Graph(self._absent)
        self._mapper = Mapper(context.client, context.clock)
        self._objects = Objects(context.client.faster(QPS_TIMES, 1), self._mapper)
        self._monitors = Monitors(context, ignored, self._observe, self._gone)
        self.to_delete = context.queue("garbage_collector_attempt_to_delete")
        self.to_orphan = context.queue("garbage_collector_attempt_to_orphan")
        self._errors = context.metrics.counter(
            "garbagecollector_controller_resources_sync_error_total", "How often following discovery failed."
        ).labels()

    async def refresh(self) -> None:
        """Follow what discovery names now."""
        if not await self._monitors.refresh():
            self._errors.inc()

    async def complete(self, timeout_s: float) -> None:
        """Wait until every resource has been listed, at most so long."""
        deadline = self._clock.monotonic() + timeout_s
        while not self._monitors.synced and self._clock.monotonic() < deadline:
            await self._clock.sleep(_POLL_S)
        if not self._monitors.synced:
            missing = ",".join(self._monitors.missing())
            text = "Not all resources could be listed in time, collecting garbage all the same"
            log.warning(text, extra={"fields": {"missing": missing}})

    # -- the graph

    def _observe(self, identity: Identity, meta: ObjectMeta, old: ObjectMeta | None) -> None:
        self._apply(self.graph.observe(identity, meta, old))

    def _gone(self, identity: Identity) -> None:
        self._apply(self.graph.remove(identity))

    def _apply(self, effects: Effects | None) -> None:
        if effects is None:
            return
        for uid in effects.delete:
            self.to_delete.add(uid)
        for uid in effects.delete_later:
            self.to_delete.add_rate_limited(uid)
        for uid in effects.orphan:
            self.to_orphan.add(uid)
        for node, ref in effects.wrong_namespace:
            self._tell(node, ref)

    def _tell(self, node: Node, ref: OwnerReference) -> None:
        me = node.identity
        about = EventRef(me.api_version, me.kind, me.namespace, me.name, me.uid)
        owner = f"[{ref.api_version}/{ref.kind}, namespace: {me.namespace}, name: {ref.name}, uid: {ref.uid}]"
        message = f'ownerRef {owner} does not exist in namespace "{me.namespace}"'
        self._recorder.emit(Notice(about, "Warning", "OwnerRefInvalidNamespace", message))

    # -- deleting

    async def try_delete(self, key: str) -> float | None:
        node = self.graph.get(key)
        if node is None or (node.being_deleted and not node.deleting_dependents):
            return None
        me = node.identity  # that of a virtual node changes while requests are under way
        try:
            await self._attempt(node, me)
        except OwnerOfAnotherScope:
            return None
        except NotFound:
            self._apply(self.graph.absent(me))
            return None
        if node.virtual and self.graph.get(key) is node:
            raise NotObserved(f"{me.kind} {me.name} has not been observed yet")
        return None

    async def _attempt(self, node: Node, me: Identity) -> None:
        if node.deleting_dependents:
            await self._wait_for_dependents(node)
            return
        try:
            await self._judge(node, me, None if node.virtual else self._cached(node))
        except Conflict:
            await self._judge(node, me, None)

    def _cached(self, node: Node) -> ObjectMeta | None:
        """The metadata of an observed node as its informer has it; None where that is another object by now."""
        me = node.identity
        informer = self._monitors.of_kind(me.api_version, me.kind)
        if informer is None:
            return None
        obj = informer.store.get(f"{me.namespace}/{me.name}" if me.namespace else me.name)
        if obj is None or obj.metadata.uid != me.uid:
            return None
        meta: ObjectMeta = obj.metadata
        return meta

    async def _judge(self, node: Node, me: Identity, meta: ObjectMeta | None) -> None:
        if meta is None:
            live = await self._objects.get(me)
            if live.uid != me.uid:
                raise NotFound(404, "NotFound", "another object of this name")
            meta = live.metadata
        owners = [await self._state(ref, node) for ref in meta.owner_references]
        verdict = plan.judge(node, meta, owners)
        match verdict:
            case Keep():
                return
            case Disown(uids):
                await self._objects.patch(me, plan.disown(me.uid, uids), lambda live: plan.disown_whole(live, uids))
            case Remove(propagation, unblock):
                if unblock:
                    await self._objects.patch(me, plan.unblock(me.uid, meta.owner_references), plan.unblock_whole)
                    meta = (await self._objects.get(me)).metadata
                await self._objects.delete(me, meta, propagation)

    async def _state(self, ref: OwnerReference, node: Node) -> Owner:
        """What is known of an owner: from the graph if it has been seen alive, else from the server."""
        owner = self.graph.get(ref.uid)
        known = owner is not None and not owner.virtual and owner.identity.names(ref)
        if owner is not None and known and owner.identity.namespace in ("", node.identity.namespace):
            if not owner.deleting_dependents:
                return Owner.SOLID
            meta = self._cached(owner)
            if meta is not None and FOREGROUND in meta.finalizers:
                return Owner.WAITING
        return await self._asked(ref, node.identity.namespace)

    async def _asked(self, ref: OwnerReference, namespace: str) -> Owner:
        if owner_identity(ref, "", namespaced=False) in self._absent:
            return Owner.DANGLING
        if owner_identity(ref, namespace, namespaced=True) in self._absent:
            return Owner.DANGLING
        resource = await self._objects.resource(ref.api_version, ref.kind)
        if resource.namespaced and not namespace:
            raise OwnerOfAnotherScope(f"owner {ref.kind} {ref.name} is namespaced")
        identity = owner_identity(ref, namespace, namespaced=resource.namespaced)
        try:
            live = await self._objects.get(identity)
        except NotFound:
            self._absent.add(identity)
            return Owner.DANGLING
        if live.uid != ref.uid:
            self._absent.add(identity)
            return Owner.DANGLING
        waits = live.deleting and FOREGROUND in live.metadata.finalizers
        return Owner.WAITING if waits else Owner.SOLID

    async def _wait_for_dependents(self, node: Node) -> None:
        """An owner that is being deleted in the foreground goes once nothing blocks it."""
        blocking = node.blocking_dependents()
        if not blocking:
            await self._objects.remove_finalizer(node.identity, FOREGROUND)
        for dependent in blocking:
            if not dependent.deleting_dependents:
                self.to_delete.add(dependent.identity.uid)

    # -- orphaning

    async def try_orphan(self, key: str) -> float | None:
        """Take the owner's reference from all its dependents, then its finalizer."""
        node = self.graph.get(key)
        if node is None:
            return None
        freeing = (self._orphan(node, dependent) for dependent in list(node.dependents.values()))
        for failed in await asyncio.gather(*freeing, return_exceptions=True):
            if failed is not None:
                raise failed
        await self._objects.remove_finalizer(node.identity, ORPHAN)
        return None

    async def _orphan(self, owner: Node, dependent: Node) -> None:
        uids = (owner.identity.uid,)
        try:
            await self._objects.patch(
                dependent.identity,
                plan.disown(dependent.identity.uid, uids),
                lambda live: plan.disown_whole(live, uids),
            )
        except NotFound:
            return


class NotObserved(Exception):
    """An owner exists, but its event has not come yet: look again."""

    reason = "NotObserved"
