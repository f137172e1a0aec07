"""garbage-collector-controller: deletes objects whose owners are all gone, orphans dependents, and deletes the
dependents that block a foreground deletion.

Changes of all resources update a graph; objects that may have to be deleted are queued by uid. No decision relies on
the cached state of an owner: the API server is asked, and absent owners are remembered. The cached version of the
object itself is sent as a precondition, so that a write on a stale view is rejected and tried again.

upstream: pkg/controller/garbagecollector
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import FOREGROUND
from kcm_cli.component.clock import Clock
from kcm_cli.component.logs import V2
from kcm_cli.controllers.garbage_collector import plan
from kcm_cli.controllers.garbage_collector.changes import (
    CHUNK,
    Absent,
    Change,
    Deleted,
    GraphChanges,
    Listed,
    ObjectKind,
    Observed,
    Unfinished,
)
from kcm_cli.controllers.garbage_collector.changes import NAME as CHANGES
from kcm_cli.controllers.garbage_collector.config import GarbageCollectorConfig
from kcm_cli.controllers.garbage_collector.dump import dot
from kcm_cli.controllers.garbage_collector.graph import (
    ORPHAN,
    Effects,
    Graph,
    Identity,
    Node,
    Parts,
    identity_of,
    partition,
)
from kcm_cli.controllers.garbage_collector.monitors import DiscoveryResult, Monitors
from kcm_cli.controllers.garbage_collector.objects import Objects, OwnerOfAnotherScope
from kcm_cli.controllers.garbage_collector.plan import Disown, Keep, Owner, Remove
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, starting
from kcm_cli.engine.definitions import PERIOD_S, Refreshes, mapper, name_of
from kcm_cli.engine.passes import Loop
from kcm_cli.engine.worker import Pending, unhandled
from kcm_cli.engine.writes import tell
from kcm_cli.machinery.meta import Object, ObjectMeta, OwnerReference, PartialObject, object_key
from kcm_cli.machinery.recent import Recent
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.mapper import NoMatch
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.turns import in_turns
from kcm_cli.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

SYNC_TIMEOUT_S = 30.0
QPS_TIMES = 2
"""Of --kube-api-qps: a deletion takes two requests. Upstream: cmd/kube-controller-manager/app/core.go."""
_POLL_S = 0.1
_NAMED = 5
"""Of an object's owners that are gone, so many are named in a log line."""
_ASKED = "adding dependent to attemptToDelete, because its owner is deletingDependents"
GUESS_S, GUESS_MAXIMUM_S = 0.005, 1000.0
"""The delay before other coordinates of a virtual node are tried, doubled each time. So dependents that disagree about
an owner which does not exist cost little."""
QUEUED_AT_ONCE = 500
ORPHANED_AT_ONCE = 20


class GarbageCollector:
    """Keys are uids of nodes in the graph. The watched kinds come from discovery (``Monitors``).

    ``_absent``: upstream's absentOwnerCache.
    """

    def __init__(self, context: ControllerContext) -> None:
        ignored = frozenset(context.config(GarbageCollectorConfig).ignored_resources)
        self._clock: Clock = context.clock
        self._recorder = context.recorder
        self._absent = Recent()
        self.graph = Graph(self._absent)
        self._mapper = mapper(context)
        self._objects = Objects(context.client.faster(QPS_TIMES, 1), self._mapper)
        self.changes = GraphChanges(context.clock, context.queue_metrics(CHANGES), self._change)
        self._monitors = Monitors(context, ignored, self.changes.put)
        self._asking: dict[str, tuple[Identity, asyncio.Task[PartialObject]]] = {}
        self._found: dict[str, tuple[Identity, float]] = {}
        """When virtual nodes were found on the API server, by uid. Those of kinds that are not watched yet are not
        looked for again before they are, or for a while."""
        self._unmapped: set[str] = set()
        """The uids of objects that are retried since their kind, or that of an owner, is not served."""
        self._unmapped_owners: set[str] = set()
        """The same of owners whose dependents are orphaned."""
        self.to_delete, self.to_orphan = context.queues
        self._changed = asyncio.Event()
        """The watched resources have changed."""
        self._listed: set[tuple[GVR, str]] = set()
        """The resources of the last discovery, and their kinds."""
        self._served: set[str] = set()
        """The names of the definitions, or what they would be, of all that is served."""
        self.discovery = Refreshes(context, self.refresh, lambda names: not names <= self._served)
        self.syncs = Loop(name=context.name, clock=context.clock, step=self._follow, pause_s=lambda: 0.0)
        context.debug["graph"] = lambda path, query: ("text/vnd.graphviz", dot(self.graph, query.get("uid", "")))
        self._errors = context.metrics.counter(
            "garbagecollector_controller_resources_sync_error_total",
            "Number of failed attempts to watch the resources in discovery.",
        ).labels()

    async def refresh(self) -> None:
        """Watch the resources that discovery lists."""
        try:
            found = await self._mapper.discovery(younger_than_s=0.0)
        except RequestError as error:
            log.info("failed to discover preferred resources", extra={"fields": {"error": str(error)}})
            self._errors.inc()
            return
        listed, self._listed = self._listed, {(one.gvr, one.kind) for one in found.all()}
        self._served = {name_of(gvr.group, gvr.plural) for gvr, _ in self._listed}
        outcome = await self._monitors.refresh(found)
        if outcome is DiscoveryResult.FAILED:
            log.log(V2, "no resources reported by discovery, skipping garbage collector sync")
            self._errors.inc()
        elif outcome is DiscoveryResult.CHANGED:
            self._changed.set()
        if self._listed - listed:  # also a group that could not be read, whose monitors have stayed
            await self._retry(self.to_delete, list(self._unmapped))
            await self._retry(self.to_orphan, list(self._unmapped_owners))

    async def _follow(self) -> None:
        """Wait until the resources of the last refresh have synced. ``refresh`` does not wait for it, so that one that
        cannot be listed does not keep new ones from being watched."""
        await self._changed.wait()
        self._changed.clear()
        if await self._until_synced():
            log.log(V2, "synced garbage collector")
            return
        fields = {"missing": ",".join(self._monitors.missing())}
        log.error("timed out waiting for dependency graph builder sync during GC sync", extra={"fields": fields})
        self._errors.inc()

    async def _until_synced(self) -> bool:
        """Wait until all monitors have synced, for PERIOD_S. Virtual nodes of kinds that have synced are retried."""
        deadline = self._clock.monotonic() + PERIOD_S
        before: set[tuple[str, str]] = set()
        while True:
            synced = self._monitors.synced_kinds()
            new, before = synced - before, synced
            found = list(self._found.items()) if new else []
            served = (uid for uid, (me, _) in found if me.group_kind in new)
            await self._retry(self.to_delete, served)
            if self._monitors.synced:
                return True
            if self._clock.monotonic() >= deadline:
                return False
            await self._clock.sleep(_POLL_S)

    async def _retry(self, queue: WorkQueue, uids: Iterable[str]) -> None:
        """Queue these nodes now, and not after their backoff."""
        async for uid in in_turns(uids, QUEUED_AT_ONCE):
            queue.forget(uid)
            queue.add(uid)

    async def complete(self, timeout_s: float) -> None:
        """Wait until all resources have synced and are in the graph, or until the timeout."""
        if not await self._until(lambda: self._monitors.synced and self.changes.idle, timeout_s):
            fields = {"missing": ",".join(self._monitors.missing())}
            text = "Garbage collector: not all resource monitors could be synced, proceeding anyways"
            log.info(text, extra={"fields": fields})
        else:
            log.info("Garbage collector: all resource monitors have synced")
        log.info("Proceeding to collect garbage")

    async def _until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        deadline = self._clock.monotonic() + timeout_s
        while not holds():
            if self._clock.monotonic() >= deadline:
                return False
            await self._clock.sleep(_POLL_S)
        return True

    # -- the graph

    def _change(self, change: Change) -> Unfinished:
        match change:
            case Observed(kind, obj, old):
                return self._observe(kind.identity(obj.metadata), obj.metadata, old)
            case Listed(kind, objs):
                return self._list(kind, objs)
            case Deleted(kind, obj):
                identity = kind.identity(obj.metadata)
                self._forget(identity.uid)
                return self._change_graph(identity, partial(self.graph.remove, identity))
            case Absent(identity):
                self._found.pop(identity.uid, None)
                return self._change_graph(identity, partial(self.graph.absent, identity))

    async def _list(self, kind: ObjectKind, objs: Iterable[Object]) -> None:
        async for obj in in_turns(objs, CHUNK):
            rest = self._observe(kind.identity(obj.metadata), obj.metadata, None)
            if rest is not None:
                await rest

    def _observe(self, identity: Identity, meta: ObjectMeta, old: ObjectMeta | None) -> Unfinished:
        self._forget(identity.uid)
        return self._change_graph(identity, partial(self.graph.observe, identity, meta, old))

    def _forget(self, uid: str) -> None:
        """Forget what the API server answered: an answer under way, too, may be from before a change."""
        self._asking.pop(uid, None)
        self._found.pop(uid, None)

    def _change_graph(self, identity: Identity, change: Callable[[Parts | None], Effects | None]) -> Unfinished:
        """Change the graph and queue what follows; step by step for a virtual node with many dependents."""
        return self._change_in_parts(identity, change) if self._many(identity.uid) else self._apply(change(None))

    def _many(self, uid: str) -> bool:
        """Whether this is a virtual node with many dependents."""
        node = self.graph.get(uid)
        return node is not None and node.virtual and len(node.dependents) > QUEUED_AT_ONCE

    async def _change_in_parts(self, identity: Identity, change: Callable[[Parts | None], Effects | None]) -> None:
        node = self.graph.get(identity.uid)
        dependents = list(node.dependents.values()) if node is not None else []
        matching, others = list[Node](), list[Node]()
        for start in range(0, len(dependents), QUEUED_AT_ONCE):
            some, rest = partition(dependents[start : start + QUEUED_AT_ONCE], identity)
            matching += some
            others += rest
            await asyncio.sleep(0)
        left = self._apply(change((matching, others)))
        if left is not None:
            await left

    def _apply(self, effects: Effects | None) -> Unfinished:
        if effects is None:
            return None
        for uid in effects.orphan:
            self.to_orphan.add(uid)
        for node in effects.delete_later:
            delay_s = min(GUESS_S * 2.0 ** min(node.guesses, 60), GUESS_MAXIMUM_S)
            self.to_delete.add_after(node.identity.uid, delay_s)
        for node, ref in effects.wrong_namespace:
            self._emit(node, ref)
        if log.isEnabledFor(V2):
            self._log_waiting(effects.delete)
        if len(effects.delete) > QUEUED_AT_ONCE:
            return self._queue(effects.delete)
        for uid in effects.delete:
            self.to_delete.add(uid)
        return None

    def _log_waiting(self, uids: Iterable[str]) -> None:
        for node in map(self.graph.get, uids):
            if node is not None and node.deleting_dependents:
                text = "add item to attemptToDelete, because it's waiting for its dependents to be deleted"
                log.log(V2, text, extra={"fields": {"item": node.identity}})

    async def _queue(self, uids: Iterable[str]) -> None:
        """Queue these uids for deletion, yielding to the loop in between."""
        async for uid in in_turns(uids, QUEUED_AT_ONCE):
            self.to_delete.add(uid)

    def _emit(self, node: Node, ref: OwnerReference) -> None:
        me = node.identity
        fields = {"item": me, "owner": identity_of(ref, me.namespace)}
        log.log(V2, "item references an owner but does not match namespaces", extra={"fields": fields})
        about = EventRef(me.api_version, me.kind, me.namespace, me.name, me.uid)
        owner = f"[{ref.api_version}/{ref.kind}, namespace: {me.namespace}, name: {ref.name}, uid: {ref.uid}]"
        message = f'ownerRef {owner} does not exist in namespace "{me.namespace}"'
        self._recorder.emit(Notice(about, "Warning", "OwnerRefInvalidNamespace", message))

    # -- deleting

    async def try_delete(self, key: str) -> float | None:
        node = self.graph.get(key)
        self._unmapped.discard(key)
        if node is None or (node.being_deleted and not node.deleting_dependents):
            self._found.pop(key, None)
            return None
        me = node.identity  # that of a virtual node changes while requests are under way
        if node.virtual and self._was_found(me):
            raise NotObserved(f"{me.kind} {me.name} is of a kind that is not watched yet")
        try:
            await self._attempt(node, me)
        except OwnerOfAnotherScope as error:
            fields = {"item": me, "owner": str(error)}
            log.log(V2, "item is cluster-scoped, but refers to a namespaced owner", extra={"fields": fields})
            return None
        except NoMatch as error:  # of a custom resource that was removed, or that discovery does not know yet
            self._unmapped.add(key)
            raise NotMapped(str(error)) from None
        except NotFound:
            self.changes.put(Absent(me))
            return None
        if node.virtual and self.graph.get(key) is node:
            self._found[key] = me, self._clock.monotonic()
            raise NotObserved(f"{me.kind} {me.name} has not been observed yet")
        return None

    def _was_found(self, me: Identity) -> bool:
        found = self._found.get(me.uid)
        if found is None or found[0] != me or self._clock.monotonic() >= found[1] + PERIOD_S:
            return False
        return me.group_kind not in self._monitors.synced_kinds()

    async def _attempt(self, node: Node, me: Identity) -> None:
        if node.deleting_dependents:
            await self._wait_for_dependents(node)
            return
        try:
            await self._process(node, me, None if node.virtual else self._cached(node))
        except Conflict:
            await self._process(node, me, None)

    def _cached(self, node: Node) -> ObjectMeta | None:
        """The cached metadata of an observed node; None if the cache has no object with its uid."""
        me = node.identity
        informer = self._monitors.of_kind(me.api_version, me.kind)
        if informer is None:
            return None
        obj = informer.store.get(_key_of(me))
        if obj is None or obj.metadata.uid != me.uid:
            return None
        meta: ObjectMeta = obj.metadata
        return meta

    async def _process(self, node: Node, me: Identity, cached: ObjectMeta | None) -> None:
        meta, version = cached, ""
        if meta is None:
            meta = (await self._objects.get(me)).metadata
        else:
            version = meta.resource_version
        log.log(V2, "Processing item", extra={"fields": {"item": me, "virtual": node.virtual}})
        owners = [await self._read_owner(ref, me.namespace) for ref in meta.owner_references]
        fate = plan.plan(node, meta, owners)
        for remark in plan.remarks(node, meta, owners, fate) if log.isEnabledFor(V2) else ():
            tell(remark)
        reason, owner = plan.reason(fate, owners), self._named(meta, owners)
        match fate:
            case Keep():
                return
            case Disown(uids):
                patch, whole = plan.disown(me.uid, uids, version), partial(plan.disown_whole, owners=uids)
                await self._objects.patch(me, patch, whole, reason=reason, owner=owner)
            case Remove(propagation, unblock):
                if unblock:
                    patch = plan.unblock(me.uid, meta.owner_references, meta.resource_version)
                    await self._objects.patch(me, patch, plan.unblock_whole, reason=plan.CYCLE, owner=owner)
                    before, meta = meta, (await self._objects.get(me)).metadata
                    if _owners(meta) != _owners(before):
                        raise Conflict(409, "Conflict", "the object was given other owners")
                await self._objects.delete(me, meta, propagation, reason=reason, owner=owner)
                if not node.virtual:
                    node.being_deleted = True  # there is no way back: its event need not come first

    def _named(self, meta: ObjectMeta, owners: Iterable[Owner]) -> str:
        """Kinds and keys of the owners that are gone or going, for logs."""
        gone = (ref for ref, state in zip(meta.owner_references, owners, strict=True) if state is not Owner.SOLID)
        return ", ".join(f"{ref.kind} {self._key(ref, meta.namespace)}" for ref in islice(gone, _NAMED))

    def _key(self, ref: OwnerReference, namespace: str) -> str:
        wide = not namespace or identity_of(ref, "") in self._absent
        return ref.name if wide else f"{namespace}/{ref.name}"

    async def _read_owner(self, ref: OwnerReference, namespace: str) -> Owner:
        """The state of an owner: DANGLING if it is known to be absent, else as read from the API server. Raises
        NoMatch."""
        if identity_of(ref, "") in self._absent:
            return Owner.DANGLING
        if identity_of(ref, namespace) in self._absent:
            return Owner.DANGLING
        resource = await self._objects.resource(ref.api_version, ref.kind)
        if resource.namespaced and not namespace:
            raise OwnerOfAnotherScope(f"owner {ref.kind} {ref.name} is namespaced")
        identity = identity_of(ref, namespace if resource.namespaced else "")
        try:
            live = await self._owner(identity)
        except NotFound:
            self._absent.add(identity)
            return Owner.DANGLING
        waits = live.deleting and FOREGROUND in live.metadata.finalizers
        return Owner.WAITING if waits else Owner.SOLID

    async def _owner(self, identity: Identity) -> PartialObject:
        """The owner, read from the API server. Concurrent calls for the same owner share one request."""
        uid = identity.uid
        coordinates, asked = self._asking.get(uid, (None, None))
        if asked is None or coordinates != identity:
            asked = asyncio.create_task(self._objects.get(identity))
            self._asking[uid] = identity, asked
            asked.add_done_callback(partial(self._answered, uid))
        return await asyncio.shield(asked)

    def _answered(self, uid: str, asked: "asyncio.Task[PartialObject]") -> None:
        if self._asking.get(uid, (None, None))[1] is asked:
            del self._asking[uid]
        if not asked.cancelled():
            asked.exception()  # retrieved, in case the callers were cancelled

    async def _wait_for_dependents(self, node: Node) -> None:
        """Remove the finalizer of an owner in foreground deletion when nothing blocks it; else queue what blocks it."""
        me = node.identity
        if not node.blocking:
            log.log(V2, "remove DeleteDependents finalizer for item", extra={"fields": {"item": me}})
            await self._objects.remove_finalizer(me, FOREGROUND, reason="no dependent is left")
            self.graph.freed(node, FOREGROUND)
            return
        deps = node.dependents
        asked = [uid for uid in node.to_ask() if uid in deps and not deps[uid].deleting_dependents]
        for uid in asked if log.isEnabledFor(V2) else ():
            fields = {"item": me, "dependent": deps[uid].identity}
            log.log(V2, _ASKED, extra={"fields": fields})
        await self._queue(asked)

    # -- orphaning

    async def try_orphan(self, key: str) -> float | None:
        """Remove the owner's reference from all its dependents, then its orphan finalizer."""
        node = self.graph.get(key)
        self._unmapped_owners.discard(key)
        if node is None:
            return None
        left, failed = iter(list(node.dependents.values())), list[Exception]()

        async def free() -> None:
            for dependent in left:
                try:
                    await self._orphan(node, dependent)
                except Exception as error:  # noqa: BLE001  # the others are freed all the same; one of the errors is raised below
                    failed.append(error)

        async with asyncio.TaskGroup() as group:
            for _ in range(ORPHANED_AT_ONCE):
                group.create_task(free())
        try:
            if failed:
                raise next((one for one in failed if isinstance(one, NoMatch)), failed[0])
            await self._objects.remove_finalizer(node.identity, ORPHAN, reason="its dependents are orphaned")
            self.graph.freed(node, ORPHAN)
        except NoMatch:
            self._unmapped_owners.add(key)
            raise
        return None

    async def _orphan(self, owner: Node, dependent: Node) -> None:
        uids = (owner.identity.uid,)
        with suppress(NotFound):
            await self._objects.patch(
                dependent.identity,
                plan.disown(dependent.identity.uid, uids),
                lambda live: plan.disown_whole(live, uids),
                reason="orphaned",
                owner=f"{owner.identity.kind} {_key_of(owner.identity)}",
            )


def _key_of(me: Identity) -> str:
    return object_key(me.namespace, me.name)


def _owners(meta: ObjectMeta) -> set[str]:
    return {ref.uid for ref in meta.owner_references}


class NotObserved(Pending):
    """An owner exists, but its event has not been observed yet. The key is retried."""


class NotMapped(Pending):
    """The kind of an object or owner is not served."""


CONTROLLER = Controller(
    GarbageCollector,
    (
        Queue(
            "garbage_collector_attempt_to_delete",
            sync=GarbageCollector.try_delete,
            failures=unhandled("error syncing item {key}: {error}"),
            workers=GarbageCollectorConfig,
        ),
        Queue(
            "garbage_collector_attempt_to_orphan",
            sync=GarbageCollector.try_orphan,
            failures=unhandled("orphanDependents for {key} failed with {error}"),
            workers=GarbageCollectorConfig,
        ),
    ),
    beside=lambda collector: (collector.changes, collector.discovery, collector.syncs),
    prepare=lambda collector: collector.complete(SYNC_TIMEOUT_S),
    enabled=lambda context: context.config(GarbageCollectorConfig).enabled,
    announces=starting("controller", controller="garbagecollector"),
)
