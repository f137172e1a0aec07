"""Builds and runs a declared controller: its mappers are called by the caches, and its workers and passes run."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import Resource
from kcm_cli.component.logs import V4
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.controller import After, Controller, Keys, Owns, Periodic, Queue, Watch
from kcm_cli.engine.dependents import Dependents, tell_queued
from kcm_cli.engine.own_writes import OwnWrites, count_unseen, stale_sync_skips
from kcm_cli.engine.passes import Loop
from kcm_cli.engine.worker import Worker, until_synced
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.runtime.turns import Longest
from kcm_cli.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

T = TypeVar("T")


def build(declared: Controller, context: ControllerContext) -> Runnable | None:
    """Register its mappers with the caches. None where the controller has nothing to do. Raises StartError."""
    if not declared.enabled(context):
        return None
    queues = tuple(_queue(context, queue) for queue in declared.all_queues)
    followed = declared.followed_under(context)
    scopes = {watch.resource.gvr: watch.scope for watch in followed}
    context = replace(context, queues=queues, scopes=scopes)
    made = declared.make(context)
    for queue, work_queue in zip(declared.all_queues, queues, strict=True):
        _Binding(context, made, queue, work_queue).follow()
    caches = tuple(context.cache(watch.resource) for watch in followed)
    return _Running(context, declared, made, caches)


def bound(function: Callable[..., T], made: object) -> Callable[..., T]:
    """The function with its first argument: the controller's object, or that attribute of it whose method it is.

    Raises TypeError for a method of something else, or of several attributes.
    """
    name, owner = getattr(function, "__name__", ""), getattr(function, "__qualname__", "").rpartition(".")[0]
    if not owner or owner.endswith("<locals>"):
        return MethodType(function, made)
    attributes = (made, *getattr(made, "__dict__", {}).values())
    found = [one for one in attributes if any(vars(of).get(name) is function for of in type(one).__mro__)]
    if len(found) != 1:
        raise TypeError(f"{owner}.{name} is a method of {len(found)} attributes of {type(made).__name__}")
    return MethodType(function, found[0])


def _queue(context: ControllerContext, queue: Queue) -> WorkQueue:
    limiter = queue.limiter(context) if queue.limiter is not None else None
    if queue.measured:
        return context.queue(queue.name, limiter)
    return WorkQueue(queue.name, context.clock, limiter=limiter, caused=context.causes is not None)


class _Binding(msgspec.Struct, frozen=True):
    """Registers the mappers of one queue with the caches."""

    context: ControllerContext
    made: Any
    declared: Queue
    queue: WorkQueue

    def follow(self) -> None:
        declared = self.declared
        for watch in (() if declared.reconciles is None else (declared.main,)) + declared.watches:
            if watch.when(self.context):
                self._watch(watch)
        for owned in declared.owns:
            self._own(declared.main.resource, owned)

    def _watch(self, watch: Watch) -> None:
        changed = self._bound(watch.changed or watch.keys)
        added = self._bound(watch.added) or changed
        updated = self._bound(watch.updated) or (_of_new(changed) if changed is not None else None)
        deleted = self._bound(watch.deleted or watch.keys)
        unknown_deleted = self._bound(watch.unknown_deleted)
        listener = partial(_listener, self._put(watch.after), self.context.name, watch.resource.kind)
        if added or updated or deleted or unknown_deleted:
            self.context.cache(watch.resource).listen(
                on_add=listener("added", added),
                on_update=listener("updated", updated),
                on_delete=listener("deleted", deleted),
                on_unknown_delete=listener("deleted", unknown_deleted),
            )

    def _bound(self, mapper: Callable[..., Keys] | None) -> Callable[..., Keys] | None:
        return None if mapper is None else bound(mapper, self.made)

    def _own(self, owner: Resource[Any], owned: Owns) -> None:
        put, updated = self._put(), None if owned.updated is None else bound(owned.updated, self.made)
        dependents: Dependents[Any, Any] = Dependents(
            owner.kind,
            self.context.cache(owner).store,
            self.queue.add,
            about=(self.context.name, owned.resource.kind),
            selector=owned.selector,
            expectations=self.context.expectations if owned.expected else None,
            changed=None if updated is None else lambda obj, old, new: put(updated(obj, old, new)),
            matters=owned.matters,
            overdue=lambda key: self.context.expectations.expired(key, self.context.clock.monotonic()),
        )
        dependents.listen(self.context.cache(owned.resource))

    def _put(self, after: Callable[[ControllerContext], float] | None = None) -> Callable[[Keys], None]:
        """Queue keys: at once, after their own delay, or after the delay of the watch."""
        queue, delay_s = self.queue, after(self.context) if after is not None else None

        def put(keys: Keys) -> None:
            for key in keys:
                if isinstance(key, After):
                    queue.add_after(key.key, key.delay_s)
                elif delay_s is not None:
                    queue.add_after(key, delay_s)
                else:
                    queue.add(key)

        return put


def _of_new(mapper: Callable[[Any], Keys]) -> Callable[[Any, Any], Keys]:
    """Maps the object that an update has led to."""
    return lambda old, new: mapper(new)


def _listener(
    put: Callable[[Keys], None], controller: str, kind: str, change: str, mapper: Callable[..., Keys] | None
) -> Callable[..., None] | None:
    """Queues the keys that the mapper returns for a change; None without a mapper. The names are for the log."""
    if mapper is None:
        return None

    def listener(*objects: Any) -> None:
        if keys := mapper(*objects):
            if log.isEnabledFor(V4):
                keys = tuple(keys)
                for key in keys:
                    tell_queued(controller, kind, change, objects[-1].key, key.key if isinstance(key, After) else key)
            put(keys)

    return listener


class _Running(msgspec.Struct, frozen=True):
    """The running controller: its workers, its passes, and what runs beside them."""

    context: ControllerContext
    declared: Controller
    made: Any
    caches: tuple[AnyInformer, ...]

    async def run(self) -> None:
        """Until cancelled."""
        for each in self.declared.announces:
            log.info(each.started, extra={"fields": dict(each.fields)})
        try:
            await self._run()
        finally:
            for each in self.declared.announces:
                log.info(each.ended, extra={"fields": dict(each.fields)})

    async def _run(self) -> None:
        beside = tuple(self.declared.beside(self.made)) if self.declared.beside is not None else ()
        if not beside:
            await self._work()  # its StartError is not wrapped in a group
            return
        async with asyncio.TaskGroup() as group:
            for part in beside:
                group.create_task(part.run())
            group.create_task(self._work())

    async def _work(self) -> None:
        """Run workers and passes once the controller is prepared and its caches have synced."""
        if self.declared.prepare is not None:
            await self.declared.prepare(self.made)
        fields = {"controller": self.context.name}
        log.info("Waiting for caches to sync", extra={"fields": fields})
        await until_synced(self.caches)
        log.info("Caches are synced", extra={"fields": fields})
        parts: list[Runnable] = []
        own: dict[tuple[object, ...], OwnWrites | None] = {}
        for declared, queue in zip(self.declared.all_queues, self.context.queues, strict=True):
            same = (declared.writes, declared.stale_gate)  # queues with the same keys share the memory of own writes
            if same not in own:
                own[same] = self._own_writes(declared)
            parts.append(self._worker(declared, queue, own[same]))
        parts += [loop for one in self.declared.passes if (loop := self._loop(one)) is not None]
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part.run())

    def _worker(self, declared: Queue, queue: WorkQueue, own: OwnWrites | None) -> Worker:
        count = declared.workers
        if not isinstance(count, int):
            count = self.context.config(count).concurrent_syncs
        return Worker(
            controller=self.context.name,
            queue=queue,
            sync=bound(declared.sync, self.made),
            clock=self.context.clock,
            count=count,
            retries=declared.retries,
            own=own,
            kind=declared.main.resource.kind if declared.reconciles is not None else "",
            failures=declared.failures,
            spent=Longest(self.context.metrics, self.context.name),
            ring=self.context.causes,
        )

    def _own_writes(self, declared: Queue) -> OwnWrites | None:
        if not declared.writes:
            return None
        context = self.context
        skipped: Callable[[str, str], None] | None = None
        waits = not declared.stale_gate or context.gates.enabled(declared.stale_gate)
        if declared.skipped is not None:
            skipped = bound(declared.skipped, self.made)
        elif declared.stale_gate and waits:
            skipped = stale_sync_skips(context.metrics, declared.main.resource.kind)
        return OwnWrites(
            context.client,
            context.clock,
            (context.cache(kind) for kind in declared.writes if kind.gvr in context.scopes),
            unheeded=frozenset() if waits else declared.without_gate,
            skipped=skipped,
            given_up=count_unseen(context.metrics, context.name),
        )

    def _loop(self, declared: Periodic) -> Loop | None:
        pause_s = partial(declared.pause_s, self.made)
        if pause_s() <= 0:
            return None
        return Loop(
            name=self.context.name,
            clock=self.context.clock,
            step=partial(declared.step, self.made),
            pause_s=pause_s,
            delay_s=pause_s() if declared.delayed else 0.0,
            failed=declared.failed,
            ring=self.context.causes,
        )
