"""The scheduler: updates its state from informers, schedules one pod after the other, and binds in the background.

Guarantees: decisions are made one at a time, on a state that includes all earlier ones. A pod is bound at most once
(with its uid as a precondition). Failures are undone and retried.

upstream: pkg/scheduler/{schedule_one,eventhandlers}.go
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import Namespace
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Notice
from kcm_cli.planning.pods import is_terminal
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.causes import Work, set_working
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.turns import Turns
from kcm_cli.sandbox.events import ref_of
from kcm_cli.sandbox.means import Means, split
from kcm_cli.sandbox.scheduler import hints
from kcm_cli.sandbox.scheduler.decide import Placement, decide
from kcm_cli.sandbox.scheduler.device_filter import PLUGIN as DEVICES
from kcm_cli.sandbox.scheduler.devices.errors import AllocationError
from kcm_cli.sandbox.scheduler.devices.views import Claim
from kcm_cli.sandbox.scheduler.devices.writes import ClaimWrites
from kcm_cli.sandbox.scheduler.dynamic_resources import DynamicResources
from kcm_cli.sandbox.scheduler.listers import listers
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, pod_info, relabelled
from kcm_cli.sandbox.scheduler.preempt import NoHelp, Victims, is_idle, preempt
from kcm_cli.sandbox.scheduler.queue import Queued, SchedulingQueue
from kcm_cli.sandbox.scheduler.recorder import Recorder
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.verdict import FitError
from kcm_cli.sandbox.scheduler.writes import Writes
from kcm_cli.sandbox.views import SimulatedNode, SimulatedPod

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

NAME = "default-scheduler"
WORKERS = 16
FLUSH_S = 30.0
LONGEST_NOTE = 1024
_MORE = " ..."
_BATCH = 4

RESIZED = frozenset(("NodeResourcesFit",))
NODE_GONE = frozenset(("PodTopologySpread",))


class _Bind(msgspec.Struct, frozen=True):
    info: PodInfo
    placement: Placement
    work: Work | None = None


class _Fail(msgspec.Struct, frozen=True):
    info: PodInfo
    message: str
    nominated: str | None
    victims: Victims | None
    idle: Claim | None = None
    stale: Claim | None = None
    reason: str = "Unschedulable"
    work: Work | None = None


class Scheduler:
    """The default scheduler of a sandbox."""

    def __init__(self, means: Means) -> None:
        client, clock = means.connect("kube-scheduler"), means.clock
        self._listers = found = listers(means.informers)
        self._writes = Writes(client, clock)
        self._events = Recorder(client, means.names, clock, NAME, f"{NAME}-sandbox")
        self._clock = clock
        self._rng = split(means.rng)
        self._record = means.record("kube-scheduler", "Pod")
        self._state = ClusterState(found.workloads().selector_for, found.devices(clock.now))
        self._volumes = found.known_volumes()
        self._queue = SchedulingQueue(clock)
        self._work: asyncio.Queue[_Bind | _Fail] = asyncio.Queue()
        self._start = 0
        claims = ClaimWrites(client, clock)
        self._devices = DynamicResources(self._state.devices, claims, clock, found, self._queue, self._pod)
        self._listen()

    async def run(self) -> None:
        """Schedule until cancelled. The informers have to run, too."""
        await self._listers.synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._schedule(group), name="scheduling")
            group.create_task(self._queue.run(), name="scheduler queue")
            group.create_task(self._flush(), name="scheduler flush")
            group.create_task(self._events.run(), name="scheduler events")
            for number in range(WORKERS):
                group.create_task(self._worker(), name=f"scheduler worker {number}")

    # -- what the informers tell

    def _listen(self) -> None:
        listers = self._listers
        listers.pods.listen(on_add=self._pod, on_update=lambda _, pod: self._pod(pod), on_delete=self._pod_deleted)
        listers.nodes.listen(on_add=self._node_added, on_update=self._node_changed, on_delete=self._node_deleted)
        listers.namespaces.listen(
            on_add=self._namespace,
            on_update=lambda _, new: self._namespace(new),
            on_delete=lambda old: self._state.forget_namespace(old.name),
        )
        self._wake_by(listers.claims, hints.claim_changed)
        self._wake_by(listers.volumes, hints.volume_changed)
        self._wake_by(listers.classes, hints.storage_class_changed)
        self._wake_by(listers.csi_nodes, hints.csi_node_changed)
        self._wake_by(listers.capacities, hints.capacity_changed)
        listers.attachments.listen(on_delete=lambda _: self._queue.wake_where(hints.volume_detached()))

    def _wake_by(self, informer: Informer[T], hint: Callable[[T | None, T], hints.Hint]) -> None:
        """Queue the pods that an added or updated object may help."""
        informer.listen(
            on_add=lambda new: self._queue.wake_where(hint(None, new)),
            on_update=lambda old, new: self._queue.wake_where(hint(old, new)),
        )

    def _pod(self, pod: SimulatedPod) -> None:
        key = pod.key
        if is_terminal(pod):
            self._pod_deleted(pod)
        elif pod.spec.node_name:
            self._queue.remove(key)
            self._state.forget_nomination(key)
            known = self._info_on(pod.spec.node_name, key)
            came = known is None or not known.pod.spec.node_name
            info = _refreshed(known, pod)
            self._state.place(info, pod.spec.node_name)
            if known is None or came:
                self._queue.wake_where(hints.pod_added(info, self._state.namespaces))
                return
            if known.pod.metadata.labels != pod.metadata.labels:
                self._queue.wake_where(hints.pod_relabelled(known, info, self._state.namespaces))
            if known.requests != info.requests:
                self._queue.wake(RESIZED)
        elif pod.spec.scheduler_name == NAME:
            self._wants_node(pod)

    def _wants_node(self, pod: SimulatedPod) -> None:
        if pod.deleting or pod.spec.scheduling_gates or not self._devices.is_ready(pod):
            self._queue.remove(pod.key)
            return
        if self._state.node_of(pod.key) is not None:
            return  # on its way
        queued = self._queue.get(pod.key)
        info = _refreshed(queued.info if queued is not None else None, pod)
        before = queued.info.pod.status.nominated_node_name if queued is not None else ""
        if pod.status.nominated_node_name != before:
            self._state.nominate(info, pod.status.nominated_node_name)
            if queued is not None and before:
                self._wake_after(queued.info, info.priority)
        else:
            self._state.update_nominated(info)
        changed = queued is not None and _asks_anew(queued.info.pod, pod)
        self._queue.add(info, hints.pod_updated(queued.info, info) if queued is not None and changed else None)

    def _wake_after(self, left: PodInfo, highest: int) -> None:
        """A pod gave up its nominated node, which counted as used for pods up to its priority. Queue those."""
        helps = hints.pod_deleted(left, self._state.namespaces)
        self._queue.wake_where(lambda info, by: info.priority <= highest and info.key != left.key and helps(info, by))

    def _pod_deleted(self, pod: SimulatedPod) -> None:
        key = pod.key
        queued = self._queue.get(key)
        self._queue.remove(key)
        self._state.forget_nomination(key)
        self._take_off(key)
        if queued is not None and pod.status.nominated_node_name:  # its promised place is free
            self._wake_after(queued.info, queued.info.priority)

    def _take_off(self, key: str) -> None:
        """Remove a pod from its node."""
        deleted = self._info_on(self._state.node_of(key) or "", key)
        if self._state.take_off(key) and deleted is not None:
            self._queue.wake_where(hints.pod_deleted(deleted, self._state.namespaces))

    def _node_added(self, node: SimulatedNode) -> None:
        self._state.set_node(node)
        self._queue.wake_where(hints.node_added(node, self._state.devices.offers))

    def _node_changed(self, old: SimulatedNode, new: SimulatedNode) -> None:
        self._state.set_node(new)
        if _matters(old, new):
            self._queue.wake_where(hints.node_changed(old, new, self._state.devices.offers))

    def _node_deleted(self, node: SimulatedNode) -> None:
        self._state.remove_node(node.name)
        self._queue.wake(NODE_GONE)

    def _namespace(self, namespace: Namespace) -> None:
        """A namespace came or changed. Its pods may be there before it, as another cache shows them."""
        name, labels = namespace.name, namespace.labels
        before = self._state.labels_of_namespace(name)
        self._state.set_namespace(name, labels)
        if labels != before:
            self._queue.wake_where(hints.namespace_relabelled(name, before, labels))

    def _info_on(self, node: str, key: str) -> PodInfo | None:
        on = self._state.nodes.get(node)
        return on.pods.get(key) if on is not None else None

    # -- decisions

    async def _schedule(self, group: asyncio.TaskGroup) -> None:
        count, turns = 0, Turns.of_loop()
        while True:
            queued = await self._queue.pop()
            turns.begin()
            work = replace(self._decided(queued), work=self._began(queued))
            if isinstance(work, _Bind) and self._prepares(work):
                group.create_task(self._carry_out(work), name=f"volumes and devices of {work.info.key}")
            else:
                self._work.put_nowait(work)
            count += 1
            if count % _BATCH == 0 or turns.is_over():
                await asyncio.sleep(0)

    def _began(self, queued: Queued) -> Work | None:
        why = queued.taken()
        return self._record.work("scheduling", queued.info.key, why) if self._record is not None else None

    def _prepares(self, work: _Bind) -> bool:
        """Whether something has to be done before the binding."""
        return work.placement.prepares or bool(work.info.pod.spec.resource_claims)

    def _decided(self, queued: Queued) -> _Bind | _Fail:
        """As ``_decide``, for whatever pod: one costs the others nothing."""
        try:
            return self._decide(queued)
        except Exception as error:  # noqa: BLE001  # where the errors of a decision end
            _log_failure(queued.info.key, error)
            self._queue.fail(queued.info.key, frozenset())
            return _Fail(queued.info, str(error), None, None, reason="SchedulerError")

    def _decide(self, queued: Queued) -> _Bind | _Fail:
        """Decide and update the state, without await in between."""
        info = queued.info
        try:
            found = decide(info, self._state, self._volumes, self._rng, start=self._start)
        except AllocationError as error:
            self._queue.fail(info.key, frozenset())
            return _Fail(info, f'running "{DEVICES}" filter plugin: {error}', None, None, reason="SchedulerError")
        if isinstance(found, Placement):
            self._start += found.seen
            self._state.forget_nomination(info.key)
            self._state.place(info, found.node)
            self._promise(found)
            self._devices.promise(found.reservations)
            return _Bind(info, found)
        self._queue.fail(info.key, found.plugins())
        return self._no_place(info, found)

    def _no_place(self, info: PodInfo, unfit: FitError) -> _Fail:
        if not unfit.nodes:
            return _Fail(info, unfit.message(), "", None)
        budgets = self._listers.budgets.store.list()
        found = preempt(info, self._state, self._volumes, budgets, unfit)
        if isinstance(found, NoHelp):
            message = replace(unfit, preemption=found.message).message()
            if not found.keeps_nomination:
                self._state.forget_nomination(info.key)
            idle = next((claim for claim in unfit.away if is_idle(claim, info.pod)), None)
            return _Fail(info, message, None if found.keeps_nomination else "", None, idle, unfit.stale)
        self._state.nominate(info, found.node)
        return _Fail(info, unfit.message(), found.node, found, stale=unfit.stale)

    def _promise(self, placement: Placement) -> None:
        self._volumes.promised.update(volume.name for volume, _ in placement.needs.bindings)
        self._volumes.selected.update((claim.key, placement.node) for claim in placement.needs.provisions)

    def _take_back(self, placement: Placement) -> None:
        self._volumes.promised.difference_update(volume.name for volume, _ in placement.needs.bindings)
        for claim in placement.needs.provisions:
            self._volumes.selected.pop(claim.key, None)

    # -- effects

    async def _worker(self) -> None:
        while True:
            await self._carry_out(await self._work.get())

    async def _carry_out(self, work: _Bind | _Fail) -> None:
        """Do what follows from a decision, for whatever pod: one costs the others nothing."""
        with self._working(work), _logged(work.info.key):
            if not isinstance(work, _Bind):
                await self._fail(work)
                return
            try:
                if self._prepares(work):
                    await self._prepare(work)
                else:
                    await self._bind(work)
            except Exception as error:  # noqa: BLE001  # whatever it is, the node is free again
                _log_failure(work.info.key, error)
                await self._unbound(work, str(error))

    @contextmanager
    def _working(self, work: _Bind | _Fail) -> Iterator[None]:
        set_working(work.work)
        try:
            yield
        finally:
            if self._record is not None and work.work is not None:
                self._record.ring.ended(work.work)

    async def _prepare(self, work: _Bind) -> None:
        problem = await self._bind_volumes(work)
        if problem:
            await self._unbound(work, f'running PreBind plugin "VolumeBinding": {problem}')
            return
        problem = await self._reserve_devices(work)
        if problem:
            await self._unbound(work, f'running PreBind plugin "{DEVICES}": {problem}')
        else:
            await self._bind(work)

    async def _nominate(self, work: _Bind) -> None:
        """Write the nominated node; an error is ignored."""
        pod, node = work.info.pod, work.placement.node
        if pod.status.nominated_node_name == node:
            return
        try:
            await self._writes.nominate(pod, node)
        except RequestError as error:
            log.info("Cannot nominate the node", extra={"fields": {"pod": work.info.key, "err": str(error)}})

    async def _reserve_devices(self, work: _Bind) -> str:
        """Reserve the devices. Returns the error as text; empty on success."""
        pod, reservations = work.info.pod, work.placement.reservations
        waits = self._devices.waits(pod, reservations)
        problem = await self._devices.reserve(pod, reservations)
        if problem or not waits:
            return problem
        text = f"waiting for binding conditions for device on node {work.placement.node}"
        notice = Notice(ref_of("Pod", pod), "Normal", "BindingConditionsPending", text)
        self._events.emit(notice, "Scheduling")
        return await self._devices.prepared(pod)

    async def _bind_volumes(self, work: _Bind) -> str:
        """Write the nominated node, and bind volumes. Returns the error as text; empty on success."""
        needs = work.placement.needs
        try:
            await self._nominate(work)
            if needs.bindings or needs.provisions:
                return await self._writes.bind_volumes(work.info.pod, work.placement, self._listers)
            return ""
        except RequestError as error:
            return str(error)
        finally:
            self._take_back(work.placement)

    async def _bind(self, work: _Bind) -> None:
        info, node = work.info, work.placement.node
        try:
            await self._writes.bind(info.pod, node)
        except RequestError as error:
            await self._unbound(work, f'binding rejected: running Bind plugin "DefaultBinder": {error}')
            return
        self._devices.bound(info.pod)
        text = f"Successfully assigned {info.key} to {node}"
        self._events.emit(Notice(ref_of("Pod", info.pod), "Normal", "Scheduled", text), "Binding")

    async def _unbound(self, work: _Bind, message: str) -> None:
        """After a failed binding, free the node and retry later, unless the pod was deleted or bound."""
        key, uid = work.info.key, work.info.pod.uid
        pod = self._listers.pods.store.get(key)
        if pod is not None and pod.uid != uid:
            pod = None  # another one has its name, and perhaps a node
        if pod is not None and pod.spec.node_name:
            self._devices.bound(work.info.pod)
            return
        placed = self._info_on(self._state.node_of(key) or "", key)
        if placed is None or placed.pod.uid == uid:
            self._take_off(key)
        await self._devices.give_up(work.info.pod, work.placement.reservations)
        if pod is None or pod.deleting:
            return
        self._queue.add(_refreshed(work.info, pod))
        self._queue.fail(key, frozenset())
        await self._emit(work.info, "SchedulerError", message, "")

    async def _fail(self, work: _Fail) -> None:
        await self._emit(work.info, work.reason, work.message, work.nominated)
        if work.idle is not None:
            await self._devices.deallocate(work.idle)
        if work.stale is not None:
            await self._devices.delete(work.stale)
        if work.victims is not None:
            await self._preempt(work.info, work.victims)

    async def _emit(self, info: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        notice = Notice(ref_of("Pod", info.pod), "Warning", "FailedScheduling", _shortened(message))
        self._events.emit(notice, "Scheduling")
        pod = self._listers.pods.store.get(info.key)
        if pod is None or pod.uid != info.pod.uid or pod.spec.node_name:
            return
        try:
            await self._writes.failed(pod, reason, message, nominated)
        except RequestError as error:
            log.info("Cannot write the pod's status", extra={"fields": {"pod": info.key, "err": str(error)}})

    async def _preempt(self, info: PodInfo, victims: Victims) -> None:
        if all(victim.pod.deleting for victim in victims.pods):
            return  # an earlier pod has seen to that, and keeps its nomination
        for other in list(self._state.nominated.get(victims.node, {}).values()):
            if other.priority < info.priority:
                self._state.forget_nomination(other.key)
                await self._clear_nomination(other)
        for victim in victims.pods:
            try:
                if not await self._writes.evict(victim.pod, info.key):
                    continue
            except RequestError as error:
                log.info("Cannot preempt", extra={"fields": {"pod": victim.key, "err": str(error)}})
                self._queue.wake_where(lambda waiting, _: waiting.key == info.key)
                return
            text = f"Preempted by pod {info.pod.uid} on node {victims.node}"
            notice = Notice(ref_of("Pod", victim.pod), "Normal", "Preempted", text)
            self._events.emit(notice, "Preempting")

    async def _clear_nomination(self, info: PodInfo) -> None:
        """Write that a pod has no nominated node any more; an error is ignored."""
        try:
            await self._writes.clear_nomination(info.pod)
        except RequestError as error:
            log.info("Cannot clear the nominated node", extra={"fields": {"pod": info.key, "err": str(error)}})

    async def _flush(self) -> None:
        while True:
            await self._clock.sleep(FLUSH_S)
            self._queue.flush()


def _refreshed(known: PodInfo | None, pod: SimulatedPod) -> PodInfo:
    """The parsed pod. It is parsed again only if its requirements may have changed."""
    if known is None or known.resizing or known.pod.uid != pod.uid or _has_new_spec(known.pod, pod):
        return pod_info(pod)
    if known.pod.metadata.labels != pod.metadata.labels:
        return relabelled(known, pod)
    return known if known.pod is pod else replace(known, pod=pod)


def _matters(old: SimulatedNode, new: SimulatedNode) -> bool:
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.allocatable != new.status.allocatable
        or old.status.declared_features != new.status.declared_features
    )


def _asks_anew(old: SimulatedPod, new: SimulatedPod) -> bool:
    return old.metadata.labels != new.metadata.labels or _has_new_spec(old, new)


def _has_new_spec(old: SimulatedPod, new: SimulatedPod) -> bool:
    generation = old.metadata.generation != new.metadata.generation
    return generation or old.spec.scheduling_gates != new.spec.scheduling_gates


@contextmanager
def _logged(key: str) -> Iterator[None]:
    """Errors end here, in the log."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        _log_failure(key, error)


def _log_failure(key: str, error: Exception) -> None:
    log.error("Cannot schedule", extra={"fields": {"pod": key}}, exc_info=error)


def _shortened(note: str) -> str:
    """The note, cut to the maximum length of an Event's."""
    return note if len(note) <= LONGEST_NOTE else f"{note[: LONGEST_NOTE - len(_MORE)]}{_MORE}"
