"""One list and watch per resource, one cache, many listeners.

Expected flow: the initial objects (WatchList, or a chunked list where the server knows no WatchList), then changes;
a lost connection resumes from the last version seen; 410 Gone starts over with a list, and what vanished meanwhile
is reported as deleted, with the last state that was known.

Guarantees: listeners see each object's changes in order, without the store ever being behind what they see; an
object that was made again under its name is one that was deleted and one that was added;
``synced`` is set after the first complete set. Not guaranteed: that every intermediate state is seen.

upstream: staging/src/k8s.io/client-go/tools/cache
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Histogram
from kcm_cli.component.metrics.informers import HANDLING_BUCKETS
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object
from kcm_cli.rest import errors
from kcm_cli.rest.client import Client
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.backoff import Backoff, BackoffPolicy
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.wire import (
    BOOKMARK,
    DELETED,
    EventDecoder,
    ListPage,
    WatchEvent,
    initial_events_end,
)

T = TypeVar("T", bound=Object)

PAGE = 500
SHORT_WATCH_S = 1.0
"""A watch that ends sooner than this, and empty, is followed by a pause."""
log = logging.getLogger(__name__)

_NO_REASON_TO_LIST = (errors.Forbidden, errors.Unauthorized, errors.Expired, errors.Gone, errors.TooManyRequests)
WATCH_LIST = (
    ("sendInitialEvents", "true"),
    ("resourceVersionMatch", "NotOlderThan"),
    ("allowWatchBookmarks", "true"),
)


@dataclass(frozen=True, slots=True)
class Listener(Generic[T]):
    """Called in the loop, for each change, after the store has it; must not block."""

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T], None] | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which objects of a resource an informer follows, and whether only their metadata is asked for."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False


class Informer(Generic[T]):
    """Keeps ``store`` equal to the server's objects and tells the listeners.

    ``handling``: seconds that it takes to store a change and tell the listeners.
    """

    def __init__(
        self,
        resource: Resource[T],
        client: Client,
        clock: Clock,
        rng: random.Random,
        scope: Scope | None = None,
    ) -> None:
        self.resource = resource
        self.scope = scope or Scope()
        self.store: Store[T] = Store()
        self.synced = asyncio.Event()
        self.last_version = ""
        self.handling = Histogram(HANDLING_BUCKETS)
        self._client = client
        self._clock = clock
        self._rng = rng
        self._listeners: list[Listener[T]] = []
        self._watch_list = True
        self._backoff = Backoff(BackoffPolicy(), rng)

    def listen(
        self,
        *,
        on_add: Callable[[T], None] | None = None,
        on_update: Callable[[T, T], None] | None = None,
        on_delete: Callable[[T], None] | None = None,
    ) -> Listener[T]:
        """Add a listener; objects that are already known are given to it as added."""
        listener = Listener(on_add, on_update, on_delete)
        if on_add is not None:
            for obj in self.store:
                on_add(obj)
        self._listeners.append(listener)
        return listener

    def unlisten(self, listener: Listener[T]) -> None:
        self._listeners.remove(listener)

    def resync(self) -> None:
        """Give every object to the listeners once more, as an update to itself."""
        for obj in self.store.list():
            for listener in self._listeners:
                if listener.on_update is not None:
                    listener.on_update(obj, obj)

    async def run(self) -> None:
        """Follow the resource until cancelled."""
        while True:
            try:
                if not self.last_version:
                    await self._fill()
                if self.last_version:
                    await self._follow()
                else:  # the server ended the watch before the set was whole
                    await self._clock.sleep(self._backoff.next_s(self._clock.monotonic()))
            except (TransportError, errors.ApiError, codec.DecodeError) as error:
                await self._wait(error)

    async def _wait(self, error: Exception) -> None:
        if isinstance(error, errors.Expired | errors.Gone):
            self.last_version = ""
        delay = self._backoff.next_s(self._clock.monotonic())
        retry_after = getattr(error, "retry_after_s", None)
        log.warning(
            "Watch ended, trying again",
            extra={"fields": {"resource": str(self.resource), "delay_s": round(delay, 3), "err": str(error)}},
        )
        await self._clock.sleep(max(delay, retry_after or 0.0))

    # -- the initial set

    async def _fill(self) -> None:
        if self._watch_list:
            try:
                await self._fill_by_watch()
                return
            except errors.ApiError as error:
                if self.last_version or isinstance(error, _NO_REASON_TO_LIST):
                    raise
                # An older server refuses the parameters, one on an old etcd cannot serve them: a list always works.
                self._watch_list = error.status >= 500 and error.status != 501
        await self._fill_by_list()

    async def _fill_by_watch(self) -> None:
        found: dict[str, T] = {}
        async with aclosing(self._events(WATCH_LIST)) as events:
            async for event in events:
                if event.type == BOOKMARK:
                    if initial_events_end(event):
                        self._replace(found, event.object.metadata.resource_version)
                        await self._apply(events)
                elif event.type == DELETED:
                    found.pop(event.object.key, None)
                else:
                    found[event.object.key] = event.object

    async def _fill_by_list(self) -> None:
        found: dict[str, T] = {}
        token, version = "", ""
        while True:
            page = await self._page(token)
            for index, item in enumerate(page.items or ()):
                obj = self.resource.decode(item)
                found[obj.key] = obj
                if index % PAGE == PAGE - 1:
                    await asyncio.sleep(0)
            version, token = page.resource_version, page.next_page
            if not token:
                break
        self._replace(found, version)

    async def _page(self, token: str) -> ListPage:
        scope = self.scope
        body = await self._client.list_page(
            self.resource,
            scope.namespace,
            limit=PAGE,
            continue_=token,
            resource_version="" if token else "0",
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            metadata_only=scope.metadata_only,
        )
        return codec.decode(body, ListPage)

    def _replace(self, found: dict[str, T], version: str) -> None:
        """Make the store equal to a complete set, which is one step in ``handling``. atomic: no await."""
        started = time.perf_counter()
        for key in sorted(self.store.keys() - found.keys()):
            self._remove(key)
        for obj in found.values():
            self._put(obj)
        self.handling.observe(time.perf_counter() - started)
        self.last_version = version
        self._backoff.reset()
        self.synced.set()

    # -- changes

    async def _follow(self) -> None:
        started, before = self._clock.monotonic(), self.last_version
        query = (("resourceVersion", self.last_version), ("allowWatchBookmarks", "true"))
        async with aclosing(self._events(query)) as events:
            await self._apply(events)
        if self.last_version == before and self._clock.monotonic() - started < SHORT_WATCH_S:
            await self._clock.sleep(self._backoff.next_s(self._clock.monotonic()))

    async def _apply(self, events: AsyncIterator[WatchEvent[T]]) -> None:
        async for event in events:
            obj = event.object
            if event.type != BOOKMARK:
                started = time.perf_counter()
                if event.type == DELETED:
                    self._remove(obj.key, obj)
                else:
                    self._put(obj)
                self.handling.observe(time.perf_counter() - started)
            self.last_version = obj.metadata.resource_version

    async def _events(self, query: tuple[tuple[str, str], ...]) -> AsyncGenerator[WatchEvent[T], None]:
        """The events of one watch, until the server ends it. Yields to the loop after each chunk of PAGE."""
        scope = self.scope
        decoder = EventDecoder(self.resource)
        timeout_s = int(300 * (1 + self._rng.random()))
        count = 0
        async with self._client.watch(
            self.resource,
            scope.namespace,
            query=(*query, ("timeoutSeconds", str(timeout_s))),
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            metadata_only=scope.metadata_only,
        ) as stream:
            async for chunk in stream.chunks:
                for event in decoder.feed(chunk):
                    yield event
                    count += 1
                    if count % PAGE == 0:
                        await asyncio.sleep(0)

    def _put(self, obj: T) -> None:
        held = self.store.get(obj.key)
        if held is not None and held.metadata.uid != obj.metadata.uid:
            self._remove(obj.key)
        old = self.store.put(obj)
        if old is None:
            for listener in self._listeners:
                if listener.on_add is not None:
                    listener.on_add(obj)
        elif old.metadata.resource_version != obj.metadata.resource_version:
            for listener in self._listeners:
                if listener.on_update is not None:
                    listener.on_update(old, obj)

    def _remove(self, key: str, last: T | None = None) -> None:
        old = self.store.pop(key)
        gone = last if last is not None else old
        if old is None or gone is None:
            return
        for listener in self._listeners:
            if listener.on_delete is not None:
                listener.on_delete(gone)


AnyInformer = Informer[Any]
