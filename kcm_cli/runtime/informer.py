"""One list and watch per resource, one cache, many listeners.

Expected flow: the initial objects (WatchList, or a chunked list from a server without it), then changes. A lost
connection resumes from the last version seen. 410 Gone starts over with a list; objects that vanished meanwhile are
reported as deleted, with their last known state.

Guarantees: listeners see each object's changes in order, and the store is never older than what they see. An object
that was recreated under its name is reported as a deletion and an addition. ``synced`` is set after the first complete
set. An object that cannot be decoded is unknown to the store and does not affect other objects, nor does one for which
a listener raises. Not guaranteed: that every intermediate state is seen.

A watch or list with bytes that are not JSON is requested again, like a lost answer. If that does not help, everything
is listed, and the objects with these bytes are treated as objects that cannot be decoded. Everything is also listed
if watches from one version fail PATIENCE times in a row with an error of the server: it may be the version's. Until a
watch works, each further failure makes a list necessary, with growing delays. After MOST_FAILURES, if the server
answers each watch with an error that is not about the version, there is a list: perhaps it answers lists. If it does
not, watches and lists alternate until one works.

A WatchList that ends before it has said that the initial set is complete, or is silent for SILENCE_S, is followed by a
list at once. If WatchLists break PATIENCE times in a row, a list follows. ``trouble`` tells since when lists and
watches have failed.

API servers send a bookmark every minute, once a watch has anything to tell. A watch on which they cease to come is
opened again after SILENT_S: behind a load balancer its server may be gone, or hang, while its connection stays.
(client-go finds that out by pings of HTTP/2.)

upstream: staging/src/k8s.io/client-go/tools/cache
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.component.clock import Clock
from kcm_cli.component.logs import V2
from kcm_cli.component.metrics import Histogram
from kcm_cli.component.metrics.informers import HANDLING_BUCKETS
from kcm_cli.machinery.meta import Object, number_of
from kcm_cli.rest import errors
from kcm_cli.rest.client import Client
from kcm_cli.rest.listing import PAGE, Page, in_pages, read_page_in_turns
from kcm_cli.rest.transport import RequestError, Unreachable, Unreadable
from kcm_cli.runtime import causes
from kcm_cli.runtime.backoff import Backoff
from kcm_cli.runtime.causes import ADDED, LISTED, MODIFIED, RESYNC, Tick
from kcm_cli.runtime.frames import decoder_of
from kcm_cli.runtime.object_errors import ObjectErrors
from kcm_cli.runtime.progress import Progress
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.troubles import Trouble, Troubles
from kcm_cli.runtime.turns import Turns, in_turns
from kcm_cli.runtime.watch_limits import LATE_S, BookmarkLimit, InitialLimit, limited
from kcm_cli.runtime.wire import DELETED, Bookmark, BrokenEvent, WatchEvent

T = TypeVar("T", bound=Object)

CHUNK = 100
"""Changes that are handled before other tasks run."""
PATIENCE = 3
"""After this number of spoilt answers in a row everything is listed again."""
MOST_FAILURES = 10
"""After this number of watches in a row that the server answered with an error, whatever it was but 429, there is a
list in between: some minutes, which most outages do not last."""
SHORT_WATCH_S = 1.0
"""A watch that ends sooner than this, and empty, is followed by a pause."""
WATCH_S, LONG_WATCH_S = 300.0, 86_400.0
"""A watch lasts for one to two times this."""
MOST_ENDLESS = 2
"""After this number of WatchLists in a row without their end, the server is asked for lists only."""
SMALL = PAGE
"""A cache of so many objects is confirmed by a list of all."""
CATCH_UP_S, MOST_CATCH_UPS = 3, 2
"""The timeoutSeconds of a watch that is opened for its bookmark, which API servers send 2 s before a watch ends; how
often that is tried."""
OPEN_S = 10.0
"""A watch that has been open for this time has not failed: a server resends at once what could not be read before."""
log = logging.getLogger(__name__)

_RESYNC = Tick(RESYNC)
_TOO_LARGE = "ResourceVersionTooLarge"
_ANY = "0"
"""The version of a list or watch that may be served from any; also of a set whose server has told none."""
_CALM = (errors.Unauthorized, errors.TooManyRequests, Unreachable)
"""Refusals that say nothing about WatchLists."""
_NO_REASON_TO_LIST = (errors.Forbidden, errors.Unauthorized, errors.Expired, errors.Gone, errors.TooManyRequests)
_ABOUT_THE_SERVER = (*_CALM, errors.Forbidden, errors.NotFound, errors.ServiceUnavailable, errors.Timeout)
_BAD_GATEWAY = 502
_Found = dict[str, T | Undecodable]
_Event = WatchEvent[T] | BrokenEvent | Bookmark
WATCH_LIST = (
    ("sendInitialEvents", "true"),
    ("resourceVersionMatch", "NotOlderThan"),
    ("allowWatchBookmarks", "true"),
)


class Listener(msgspec.Struct, Generic[T], frozen=True):
    """Functions to call on the event loop for each change, after the store has it. They must not block.

    ``on_unknown``: a version of an object cannot be decoded. ``on_unknown_delete``: an object was deleted of which no
    version could be decoded.
    """

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T], None] | None = None
    on_unknown: Callable[[Undecodable], None] | None = None
    on_unknown_delete: Callable[[Undecodable], None] | None = None


class _Calls(msgspec.Struct, Generic[T], frozen=True):
    """The functions to call, by type of change. There are a dozen listeners, and few listen to each type."""

    add: tuple[Callable[[T], None], ...] = ()
    update: tuple[Callable[[T, T], None], ...] = ()
    delete: tuple[Callable[[T], None], ...] = ()
    unknown: tuple[Callable[[Undecodable], None], ...] = ()
    unknown_delete: tuple[Callable[[Undecodable], None], ...] = ()

    @staticmethod
    def of(listeners: tuple[Listener[T], ...]) -> "_Calls[T]":
        return _Calls(
            tuple(one.on_add for one in listeners if one.on_add is not None),
            tuple(one.on_update for one in listeners if one.on_update is not None),
            tuple(one.on_delete for one in listeners if one.on_delete is not None),
            tuple(one.on_unknown for one in listeners if one.on_unknown is not None),
            tuple(one.on_unknown_delete for one in listeners if one.on_unknown_delete is not None),
        )


class Scope(msgspec.Struct, frozen=True):
    """Which objects of a resource an informer follows, and whether only their metadata is requested."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False


class Informer(Generic[T]):
    """Keeps ``store`` equal to the server's objects and notifies the listeners.

    progress: the version up to which the store is complete. handling: a histogram of the seconds that storing a change
    and notifying the listeners takes. watch_list: whether to ask for WatchLists. If the server is in this process,
    watches stay open for long and ask for no bookmarks: in a quiet cluster they would be most of the work.
    """

    def __init__(  # noqa: PLR0913  # a kind, its server, and options
        self,
        resource: Resource[T],
        client: Client,
        clock: Clock,
        rng: random.Random,
        scope: Scope | None = None,
        object_errors: ObjectErrors | None = None,
        *,
        watch_list: bool = True,
    ) -> None:
        self.resource = resource
        self.scope = scope or Scope()
        self.store: Store[T] = Store()
        self.synced = asyncio.Event()
        self.last_version = ""
        self.progress = Progress()
        self.handling = Histogram(HANDLING_BUCKETS)
        self._client = client
        self._clock = clock
        self._rng = rng
        self._listeners: tuple[Listener[T], ...] = ()
        self._calls: _Calls[T] = _Calls()
        self._watch_list = watch_list
        self._object_errors = object_errors or ObjectErrors()
        self._spoilt = 0  # answers in a row that could not be read
        self._refused = 0  # failures of watches in a row, of the versions of lists in between, too
        self._failed = 0  # watches in a row that the server answered with an error, other than 429
        self._latest = False  # lists ask for the latest version, not for any
        self._unconfirmed = False  # see ``confirm``
        self._list_next = False  # between two watches
        self._catch_ups = 0  # short watches since ``confirm``
        self._unfinished = 0  # failures in a row while there is no set to follow
        self._endless = 0  # WatchLists in a row without their end
        self._opened_at = float("inf")  # when the open watch was accepted, in monotonic seconds
        self._heard_at = 0.0  # when its server sent something last
        self._backoff = Backoff(rng)
        self._troubles = Troubles(resource, self._object_errors, metadata_only=self.scope.metadata_only)

    def listen(
        self,
        *,
        on_add: Callable[[T], None] | None = None,
        on_update: Callable[[T, T], None] | None = None,
        on_delete: Callable[[T], None] | None = None,
        on_unknown: Callable[[Undecodable], None] | None = None,
        on_unknown_delete: Callable[[Undecodable], None] | None = None,
    ) -> Listener[T]:
        """Add a listener. It is called at once for all objects in the store: as added, or as unknown."""
        listener = Listener(on_add, on_update, on_delete, on_unknown, on_unknown_delete)
        if on_add is not None:
            for obj in self.store.list():
                self._notify(LISTED, (on_add,), obj)
        if on_unknown is not None:
            for unknown in tuple(self.store.unknown().values()):
                self._notify(LISTED, (on_unknown,), unknown)
        self._listen((*self._listeners, listener))
        return listener

    def unlisten(self, listener: Listener[T]) -> None:
        """Remove a listener. It may still be called for a change that is being delivered."""
        self._listen(tuple(one for one in self._listeners if one is not listener))

    def _listen(self, listeners: tuple[Listener[T], ...]) -> None:
        self._listeners, self._calls = listeners, _Calls.of(listeners)

    @property
    def listened(self) -> bool:
        """Whether there are listeners."""
        return bool(self._listeners)

    def trouble(self) -> Trouble | None:
        """Since when lists and watches have failed, and why; None where they do not. May be called from any thread.

        A kind that the server does not have is no trouble.
        """
        open_s = self._clock.monotonic() - self._opened_at
        return None if self.last_version and open_s > OPEN_S else self._troubles.current

    async def resync(self) -> None:
        """Notify the listeners of every object, as an update to itself, in the order of their adds: sorting 100,000
        would hold the loop. Yields to the loop after each CHUNK, and when a turn is over."""
        async for listed in in_turns(self.store.list(), CHUNK):
            obj = self.store.get(listed.key)
            if obj is not None:
                self._notify(RESYNC, self._calls.update, obj, obj)

    def confirm(self) -> None:
        """Not ``synced`` from now on, until the cache shows all that was written before this call. Call it while the
        informer does not run."""
        self.synced.clear()
        self._unconfirmed = self._latest = True
        self._list_next = False
        self._catch_ups = 0

    async def run(self) -> None:
        """Follow the resource until cancelled. It may be run again after that, and goes on where it was."""
        try:
            while True:
                try:
                    await self._step()
                except RequestError as error:
                    watching = bool(self.last_version) and not (self._unconfirmed or self._list_next)
                    self._judge(error, watching=watching)
                    await self._wait(error, watching=watching)
        finally:
            self._troubles.stopped()

    async def _step(self) -> None:
        if not self.last_version:
            await self._fill()
        elif self._unconfirmed:
            await self._confirm()
        elif self._list_next:
            await self._fill_by_list()
        else:
            await self._follow()

    async def _confirm(self) -> None:
        """One step to what a list would now show. Up to SMALL objects are listed. For more, a list of one object tells
        the version, and a short watch shows it with its changes or its bookmark. Where versions are no numbers, or went
        back (the storage was restored), or that does not help, all are listed, too.

        The version is that of the kind's own server and storage, which may be others than those of the lease.
        """
        bound, many = 0, len(self.store) + len(self.store.unknown()) > SMALL
        if many and self._catch_ups < MOST_CATCH_UPS:
            self._catch_ups += 1
            bound = number_of((await self._page("", 1)).resource_version)
        if not bound or bound < number_of(self.last_version):
            await self._fill_by_list()
            return
        self.progress.at(bound, self._confirmed)
        self.progress.reached(self.last_version)  # it may show that version already
        if self._unconfirmed:
            await self._follow(CATCH_UP_S)

    def _confirmed(self) -> None:
        self._unconfirmed = False
        self.synced.set()

    def _judge(self, error: RequestError, *, watching: bool) -> None:
        """Resume from the last version, or forget it, so that everything is listed at the latest version."""
        if isinstance(error, Unreadable):
            self._spoilt += 1
        if not self.last_version and not isinstance(error, _CALM):
            self._unfinished += 1
        listed, self._list_next = self._list_next, False
        expired = isinstance(error, errors.Expired | errors.Gone)
        refused = bool(self.last_version) and not listed and _is_about_the_version(error)
        if refused:
            if expired and self._refused < PATIENCE:
                self._backoff.reset()  # the server answers again, and no list has failed to help
            self._refused = max(self._refused + 1, PATIENCE if expired else 0)
        if watching and isinstance(error, errors.ApiError) and not isinstance(error, errors.TooManyRequests):
            self._failed += 1
            if self._failed >= MOST_FAILURES:
                self._list_next = self._latest = True
        too_large = isinstance(error, errors.ApiError) and error.has_cause(_TOO_LARGE)
        if too_large or expired or self._spoilt >= PATIENCE or (refused and self._refused >= PATIENCE):
            self.last_version = ""
            self._latest = True

    async def _wait(self, error: RequestError, *, watching: bool) -> None:
        now = self._clock.monotonic()
        delay = max(self._backoff.next_s(now), getattr(error, "retry_after_s", None) or 0.0)
        self._troubles.failed(error, now, watching=watching)
        await self._clock.sleep(delay)

    def _progressed(self) -> None:
        """A list is complete, or a watch has delivered something."""
        self._spoilt = 0
        self._troubles.recovered()

    # -- the initial set

    async def _fill(self) -> None:
        usable = self._watch_list and not self._client.local  # it goes on with its bookmarks
        if usable and self._unfinished < PATIENCE and self._spoilt < PATIENCE:
            try:
                if await self._fill_by_watch():
                    return
                self._endless += 1
                self._watch_list = self._endless < MOST_ENDLESS
            except errors.ApiError as error:
                if self.last_version or isinstance(error, _NO_REASON_TO_LIST):
                    raise
                # An older server refuses the parameters, one on an old etcd cannot serve them: a list always works.
                self._watch_list = error.status >= 500 and error.status != 501
        await self._fill_by_list()

    async def _fill_by_watch(self) -> bool:
        """Whether the initial set was complete. If it was, its changes have been followed until the watch ended."""
        found: _Found[T] = {}
        timeout_s = self._watch_s()
        initial = InitialLimit()
        async with (
            limited(timeout_s + LATE_S) as limit,
            aclosing(self._events(WATCH_LIST, timeout_s, initial.began)) as events,
        ):
            version = await self._initial(events, initial, found)
            if version:
                self._endless = 0
                await self._replace(found, version)
                await self._apply(events, limit)
                return True
        log.log(
            V2, "The initial set was not completed by its watch, listing it", extra={"fields": self._troubles.fields}
        )
        return False

    async def _initial(self, events: AsyncIterator[_Event[T]], initial: InitialLimit, found: _Found[T]) -> str:
        """Add the initial objects; the version of the set, empty if the watch ended before, or was silent."""
        async with initial.limit():
            async for event in events:
                if isinstance(event, Bookmark):
                    if event.last:
                        return event.resource_version or _ANY
                    continue
                if event.type == DELETED:
                    found.pop(_key(event.object), None)
                else:
                    found[_key(event.object)] = event.object
                initial.add()
        return ""

    async def _fill_by_list(self) -> None:
        found: _Found[T] = {}
        version, turns = "", Turns.of_loop()
        async with aclosing(in_pages(self._page)) as pages:
            async for page, anew in pages:
                if anew:
                    found.clear()
                for index, item in enumerate(page.items):
                    obj = self.resource.read_item(item, metadata_only=self.scope.metadata_only)
                    if isinstance(obj, Undecodable) and obj.spoilt and self._spoilt < PATIENCE:
                        raise Unreadable(f"the list cannot be read: {obj.why}")
                    found[_key(obj)] = obj
                    if index % PAGE == PAGE - 1 or turns.is_over():
                        await turns.next()
                version = page.resource_version
        await self._replace(found, version or _ANY)  # a watch from there begins with what there is

    async def _page(self, token: str, limit: int) -> Page:
        scope = self.scope
        body = await self._client.list_page(
            self.resource,
            scope.namespace,
            limit=limit,
            continue_=token,
            resource_version="" if token or self._latest else _ANY,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            metadata_only=scope.metadata_only,
        )
        return await read_page_in_turns(body, "" if scope.metadata_only else self.resource.kind)

    async def _replace(self, found: _Found[T], version: str) -> None:
        """Make the store equal to a complete set. Yields to the loop after each CHUNK, and when a turn is over. The
        whole is one step in ``handling``."""
        self.progress.replacing(version)
        absent = sorted((self.store.keys() | self.store.unknown().keys()) - found.keys())
        steps: Iterator[Callable[[], None]] = chain(
            (partial(self._remove, key) for key in absent), (partial(self._take, obj) for obj in found.values())
        )
        turns, took_s, left = Turns.of_loop(), 0.0, len(absent) + len(found)
        turns.begin()
        started = time.perf_counter()
        for number, step in enumerate(steps, 1):
            step()
            if number < left and (number % CHUNK == 0 or turns.is_over()):
                took_s += time.perf_counter() - started
                await turns.next()
                started = time.perf_counter()
        took_s += time.perf_counter() - started
        self.handling.observe(took_s)
        self.last_version = version
        self.progress.reached(version)
        self._unfinished = 0
        self._list_next = False
        if not (self._refused or self._failed or self._spoilt):
            self._backoff.reset()
        self._progressed()
        log.log(V2, "Caches populated", extra={"fields": self._troubles.fields})
        self._confirmed()

    def _take(self, obj: T | Undecodable) -> None:
        if isinstance(obj, Undecodable):
            self._mark_unknown(obj)
        else:
            self._put(obj)

    # -- changes

    async def _follow(self, catch_up_s: int = 0) -> None:
        """Watch from the last version on. catch_up_s: for so long, with bookmarks."""
        started, before = self._clock.monotonic(), self.last_version
        marks = () if self._client.local and not catch_up_s else (("allowWatchBookmarks", "true"),)
        query = (("resourceVersion", self.last_version), *marks)
        timeout_s, late_s = (catch_up_s, catch_up_s) if catch_up_s else (self._watch_s(), LATE_S)
        async with limited(timeout_s + late_s) as limit, aclosing(self._events(query, timeout_s)) as events:
            await self._apply(events, limit, ordered=before != _ANY)
        if self.last_version == before and self._clock.monotonic() - started < SHORT_WATCH_S:
            await self._clock.sleep(self._backoff.next_s(self._clock.monotonic()))
        elif self.last_version == _ANY:
            self._list_next = True  # no watch from any version tells what was deleted before it

    async def _apply(self, events: AsyncIterator[_Event[T]], limit: asyncio.Timeout, *, ordered: bool = True) -> None:
        """limit: of the watch, to be ended earlier if its server falls silent. ordered: False for a watch from any
        version. It begins with what there is, as ADDED and in no order, so that none of these versions is one to go on
        from."""
        with BookmarkLimit(self._clock, limit, lambda: self._heard_at) as silence:
            await self._apply_all(events, silence, ordered=ordered)

    async def _apply_all(self, events: AsyncIterator[_Event[T]], silence: BookmarkLimit, *, ordered: bool) -> None:
        async for event in events:
            if isinstance(event, Bookmark):
                silence.marked()
                version, ordered = event.resource_version, True
            else:
                started = time.perf_counter()
                self._change(event)
                self.handling.observe(time.perf_counter() - started)
                version, ordered = event.object.metadata.resource_version, ordered or event.type != ADDED
            if not ordered:
                self._progressed()
            elif version:
                if version != self.last_version:
                    self._refused = self._failed = 0
                self.last_version = version
                self.progress.reached(version)
                self._progressed()

    def _change(self, event: WatchEvent[T] | BrokenEvent) -> None:
        obj = event.object
        if isinstance(obj, Undecodable):
            if event.type != DELETED:
                self._mark_unknown(obj)
            elif obj.key:
                self._remove(obj.key)
            else:
                raise Unreadable("the watch cannot be read: a deletion names no object")
        elif event.type == DELETED:
            self._remove(obj.key, obj)
        else:
            self._put(obj)

    def _watch_s(self) -> int:
        """The timeoutSeconds of a watch."""
        return int((LONG_WATCH_S if self._client.local else WATCH_S) * (1 + self._rng.random()))

    async def _events(
        self, query: tuple[tuple[str, str], ...], timeout_s: int, opened: Callable[[], None] = lambda: None
    ) -> AsyncGenerator[_Event[T], None]:
        """The events of one watch, until the server ends it. Yields to the loop after PAGE events, and when a turn
        is over; not where the server is in the same process and makes them: it does, and knows how late they are.

        opened: called when the server has accepted the watch.
        """
        scope = self.scope
        count, turns, paced = 0, Turns.of_loop(), self._client.local
        async with self._client.watch(
            self.resource,
            scope.namespace,
            query=(*query, ("timeoutSeconds", str(timeout_s))),
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            metadata_only=scope.metadata_only,
        ) as stream:
            opened()
            opened_at = self._opened_at = self._clock.monotonic()
            decoder = decoder_of(
                stream.headers,
                self.resource,
                metadata_only=scope.metadata_only,
                lenient=self._spoilt >= PATIENCE,
                skipped=partial(self._object_errors.skipped, self.resource),
            )
            try:
                async for chunk in stream.chunks:
                    self._heard_at = self._clock.monotonic()
                    for event in decoder.feed(chunk):
                        yield event
                        count += 1
                        if not paced and (count % PAGE == 0 or turns.is_over()):
                            await turns.next()
            finally:
                self._opened_at = float("inf")
                if self.last_version and self._clock.monotonic() - opened_at > OPEN_S:
                    self._refused = self._failed = 0
                    self._troubles.recovered()

    def _put(self, obj: T) -> None:
        held = self.store.get(obj.key)
        if held is not None and held.metadata.uid != obj.metadata.uid:
            self._remove(obj.key)
        if self.store.unknown():
            self._remove_other_unknown(obj.key, obj.metadata.uid)
            self._object_errors.decoded(self.resource, obj.key)
        old = self.store.put(obj)
        if obj.metadata.deletion_timestamp is not None:
            self.progress.ended(obj.metadata.uid)
        if old is None:
            self._notify(ADDED if self.synced.is_set() else LISTED, self._calls.add, obj)
        elif old.metadata.resource_version != obj.metadata.resource_version:
            self._notify(MODIFIED, self._calls.update, old, obj)

    def _remove(self, key: str, last: T | None = None) -> None:
        unknown = self.store.unknown().get(key)
        if unknown is not None:
            self._object_errors.decoded(self.resource, key)
        old = self.store.pop(key)
        if old is None:
            if unknown is not None:
                self._notify(DELETED, self._calls.unknown_delete, unknown)
            return
        self.progress.removed(old.metadata.uid)
        self._notify(DELETED, self._calls.delete, last if last is not None else old)

    def _mark_unknown(self, obj: Undecodable) -> None:
        """What was decoded of the object before stays as it is; nothing but its end or another object of its name
        may look like a deletion."""
        self._object_errors.undecodable(self.resource, obj)
        if not obj.key:
            return
        held = self.store.get(obj.key)
        if held is not None and obj.metadata.uid and held.uid != obj.metadata.uid:
            self._remove(obj.key)
        self._remove_other_unknown(obj.key, obj.metadata.uid)
        self.store.mark_unknown(obj)
        if obj.metadata.deletion_timestamp is not None:
            self.progress.ended(obj.metadata.uid)
        self._notify(MODIFIED, self._calls.unknown, obj)

    def _remove_other_unknown(self, key: str, uid: str) -> None:
        """An object of which no version could be decoded was deleted where another one has its name."""
        before = self.store.unknown().get(key)
        if before is not None and before.metadata.uid and uid and before.metadata.uid != uid:
            self._remove(key)

    def _notify(self, change: str, calls: tuple[Callable[..., None], ...], *objects: T | Undecodable) -> None:
        """Call the listeners. If one raises, that is reported; the others, and other objects, are not affected."""
        if not calls:
            return
        before = causes.tell(
            _RESYNC if change == RESYNC else (change, self.resource, objects[-1], self._clock.monotonic)
        )
        try:
            for call in calls:
                try:
                    call(*objects)
                except Exception as error:  # noqa: BLE001  # a bug of the controller, which misses this change
                    self._object_errors.listener_failed(self.resource, objects[-1].key, error)
        finally:
            causes.tell(before)


def _is_about_the_version(error: RequestError) -> bool:
    """Whether a server that refuses a watch may do so again for the same version."""
    if not isinstance(error, errors.ApiError) or isinstance(error, _ABOUT_THE_SERVER):
        return False
    return error.status != _BAD_GATEWAY


def _key(obj: Object | Undecodable) -> str:
    """The key; for an object without a name its uid or, without one, the id of the Python object."""
    return obj.key or f"/{obj.metadata.uid or id(obj)}"


AnyInformer = Informer[Any]
