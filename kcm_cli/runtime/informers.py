"""The shared informers of a process: one per resource and scope. upstream: SharedInformerFactory."""

import asyncio
import random
from contextvars import Context
from typing import Any, TypeVar, cast

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.meta import Object
from kcm_cli.rest.client import Client
from kcm_cli.rest.listing import Listed, list_all
from kcm_cli.runtime.informer import AnyInformer, Informer, Listener, Scope
from kcm_cli.runtime.object_errors import ObjectErrors
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.runtime.troubles import STALLED_S

T = TypeVar("T", bound=Object)
SHOWN = 10


class Informers:
    """Hands out informers while controllers are built, and runs those that were requested. watch_list: see
    ``Informer``.

    An informer requested after ``start`` is started by the next ``start``.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: random.Random,
        *,
        resync_s: float = 0.0,
        object_errors: ObjectErrors | None = None,
        watch_list: bool = True,
    ) -> None:
        self._object_errors = object_errors or ObjectErrors()
        self._client = client
        self._clock = clock
        self._rng = rng
        self._resync_s = resync_s
        self._watch_list = watch_list
        self._informers: dict[tuple[GVR, Scope], AnyInformer] = {}
        self._running: dict[tuple[GVR, Scope], list[asyncio.Task[None]]] = {}

    def get(self, resource: Resource[T], scope: Scope | None = None) -> Informer[T]:
        """The informer of a resource; made on first use. All users share its store."""
        scope = scope or Scope()
        informer = self._informers.get((resource.gvr, scope))
        if informer is None:
            client, errors, watch_list = self._client, self._object_errors, self._watch_list
            informer = Informer(resource, client, self._clock, self._rng, scope, errors, watch_list=watch_list)
            self._informers[(resource.gvr, scope)] = informer
        return cast(Informer[T], informer)

    def metadata(self, resource: Resource[T]) -> Informer[Any]:
        """An informer that has at least the metadata of all objects: the full one where a controller already
        has it, one of PartialObjectMetadata otherwise."""
        full = self._informers.get((resource.gvr, Scope()))
        return full if full is not None else self.get(resource, Scope(metadata_only=True))

    def release(self, informer: AnyInformer, listener: Listener[Any]) -> None:
        """Remove a listener of an informer that ``metadata`` returned. An informer of metadata alone ends with its last
        listener; a full one belongs to a controller and runs on."""
        informer.unlisten(listener)
        key = (informer.resource.gvr, informer.scope)
        if informer.scope.metadata_only and not informer.listened and self._informers.get(key) is informer:
            del self._informers[key]
            for task in self._running.pop(key, ()):
                task.cancel()
            if all(gvr != informer.resource.gvr for gvr, _ in self._informers):
                self._object_errors.forget(informer.resource)

    async def list_now(self, resource: Resource[T], namespace: str = "") -> Listed[T]:
        """List the objects on the server, as the caches' user. For kinds that are rarely read, and not cached. Raises
        RequestError."""
        return await list_all(self._client, resource, namespace)

    def start(self, tasks: Tasks) -> None:
        """Run all informers that are not running yet."""
        for key, informer in self._informers.items():
            if key in self._running:
                continue
            # It works for all controllers, not for the one that asked for it first: in no context.
            running = self._running[key] = [Context().run(tasks.start, f"informer {informer.resource}", informer.run())]
            if self._resync_s > 0:
                work = self._resync(informer)
                running.append(Context().run(tasks.start, f"resync {informer.resource}", work))

    async def confirm(self, tasks: Tasks) -> None:
        """Run all informers anew, which are not synced before they show all that was written before this call."""
        ended = [task for running in self._running.values() for task in running]
        for task in ended:
            task.cancel()
        if ended:
            await asyncio.wait(ended)
        self._running.clear()
        for informer in self._informers.values():
            informer.confirm()
        self.start(tasks)

    def all(self) -> list[AnyInformer]:
        return list(self._informers.values())

    def warnings(self) -> list[str]:
        """The informers without progress for STALLED_S, a line each; the first SHOWN of them. May be called from any
        thread."""
        now, lines = self._clock.monotonic(), []
        for informer in self.all():
            trouble = informer.trouble()
            if trouble is not None and now - trouble.since >= STALLED_S:
                seconds = f"{now - trouble.since:.0f}s"
                lines.append(f"informer of {informer.resource} has made no progress for {seconds}: {trouble.why}")
        more = [f"and {len(lines) - SHOWN} more informers"] if len(lines) > SHOWN else []
        return sorted(lines)[:SHOWN] + more

    async def _resync(self, informer: AnyInformer) -> None:
        while True:
            await self._clock.sleep(self._resync_s * (1.0 + self._rng.random()))
            await informer.resync()
