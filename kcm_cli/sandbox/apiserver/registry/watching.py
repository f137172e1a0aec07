"""Watches: streams of events after a revision, filtered by selectors.

An object that starts to match is sent as ADDED, and one that no longer matches as DELETED: its last matching state
with the resourceVersion of the change. A watch ends at its timeout, and when the definition of a custom resource
changes. If the history that it needs has been compacted, it sends an ERROR event with a 410 Status.

upstream: apiserver pkg/endpoints/handlers/watch.go, pkg/storage/cacher (v1.36)
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from functools import partial
from math import inf
from typing import cast

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.runtime.turns import Part, Turns
from kcm_cli.sandbox.apiserver.entrance import Asked
from kcm_cli.sandbox.apiserver.errors import expired, too_large_version
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.media import ProtobufMedia, protobuf_stream
from kcm_cli.sandbox.apiserver.registry.options import ListOptions, list_options
from kcm_cli.sandbox.apiserver.registry.reading import FRESH_WAIT_S, chosen_by, parsed_version, reached
from kcm_cli.sandbox.apiserver.registry.responses import JSON_HEADERS
from kcm_cli.sandbox.apiserver.registry.selection import Selection
from kcm_cli.sandbox.apiserver.schema.bodies import target_of
from kcm_cli.sandbox.apiserver.store import Compacted, Event, Stored, Watcher, frame_of
from kcm_cli.sandbox.apiserver.types import ApiError
from kcm_cli.sandbox.streams import websocket
from kcm_cli.sandbox.streams.one_way import events_over_websocket
from kcm_cli.serving.connection import Dropped

MIN_TIMEOUT_S = 1800.0
BOOKMARK_S = 60.0
LAST_BOOKMARK_S = 2.0
"""A bookmark is sent so long before a watch ends. upstream: cacher/cache_watcher.go#nextBookmarkTime"""
TEAR_DOWN_S = 1.0
_BATCH, _CHUNK_BYTES = 100, 1 << 18
"""The events of a chunk, and its bytes, both at most. A cache in this process handles a chunk at once, in 1 to 4 ms."""


class _Plan(msgspec.Struct, frozen=True):
    """The parameters of a watch.

    since: the revision after which events are sent. initial: send existing objects first. end_mark: send a bookmark
    after these. ahead: ``since`` had not been reached when the watch began.
    """

    chosen: Selection
    namespace: str
    initial: bool
    since: int
    bookmarks: bool
    end_mark: bool
    timeout_s: float
    ahead: bool


class RunningWatch:
    """An open watch. asked: its request. storage: the watched resource. ending: how it was ended, see ``end``."""

    def __init__(self, asked: Asked, storage: GVR, watcher: Watcher) -> None:
        self.asked = asked
        self.storage = storage
        self.ending = ""
        self._watcher = watcher

    def end(self, how: str) -> None:
        """End the watch: ``closed``, ``broken`` (the connection breaks) or ``expired`` (with a 410 event)."""
        self.ending = self.ending or how
        self._watcher.close()

    def hold(self, revision: int | None) -> None:
        """Hold back the events after a revision; None: none."""
        if not self.ending:  # events that are held back at the end are not sent
            self._watcher.hold(revision)


class Watching:
    """Handles watch. ``opened``: called with each watch when it begins."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.running: dict[RunningWatch, None] = {}
        self.opened: Callable[[RunningWatch], None] = lambda watch: None

    def end_later(self, storages: Collection[GVR]) -> None:
        """End the watches of custom resources whose definitions have changed, ``TEAR_DOWN_S`` later.

        upstream: apiextensions-apiserver pkg/apiserver/customresource_handler.go#tearDown
        """
        for watch in self.running:
            if watch.storage in storages:
                self._core.clock.call_later(TEAR_DOWN_S, partial(watch.end, "closed"))

    async def watch(self, call: Call) -> Response | Stream:
        """Open a watch. Raises ApiError."""
        options = list_options(call.query, watch=True)
        plan = self._plan(call, options)
        if call.resource.custom:
            self._core.check_versions(call.served)
        stream = Stream(200, JSON_HEADERS, self._stream(call, plan))
        binary = isinstance(call.media, ProtobufMedia)
        if binary:
            stream = protobuf_stream(stream)
        if websocket.asked(call.request.headers):
            return events_over_websocket(call.request.headers, stream, binary=binary)
        return stream

    def _plan(self, call: Call, options: ListOptions) -> _Plan:
        store = self._core.store
        chosen = chosen_by(self._core, call, options)
        namespace = call.namespace or (chosen.namespace or "" if call.resource.namespaced else "")
        legacy = options.version in ("", "0")
        initial = legacy if options.initial is None else options.initial
        since = store.revision if legacy else parsed_version(options.version)
        timeout_s = float(options.timeout_s or 0) or MIN_TIMEOUT_S * (1 + self._core.random.random())
        end_mark = options.bookmarks and initial and (options.initial is not None or legacy)
        ahead = since > store.revision
        return _Plan(chosen, namespace, initial, since, options.bookmarks, end_mark, timeout_s, ahead)

    async def _stream(self, call: Call, plan: _Plan) -> AsyncIterator[bytes]:
        store, clock = self._core.store, self._core.clock
        if plan.timeout_s < 0:
            yield _error(ApiError(500, "InternalError", "context deadline exceeded"))
            return
        wait_s = min(plan.timeout_s, FRESH_WAIT_S)
        if plan.ahead and plan.initial and not await reached(self._core, plan.since, wait_s):
            yield _error(too_large_version(plan.since, store.revision))
            return
        try:
            watcher, initial, revision = self._open(call, plan)
        except Compacted as error:
            yield _error(_too_old(error))
            return
        running = RunningWatch(call.asked, call.hub.storage, watcher)
        self.running[running] = None
        timer = clock.call_later(plan.timeout_s, watcher.close)
        part = Part()
        try:
            self.opened(running)
            async for chunk in self._in_turns(call, plan.chosen, initial, watcher, part):
                yield chunk
            if plan.end_mark:
                yield call.media.bookmark(self._mark(call, revision, initial_end=True))
            async for chunk in self._events(call, plan, watcher, part):
                yield chunk
            if running.ending == "broken":
                raise Dropped(effect=True)
            if running.ending == "expired":
                yield _error(_too_old(Compacted(plan.since, store.revision)))
        except ApiError:  # an object without this form, or whose conversion fails: upstream ends the watch
            return
        finally:
            del self.running[running]
            timer.cancel()
            watcher.close()

    def _open(self, call: Call, plan: _Plan) -> tuple[Watcher, Iterator[Event], int]:
        """The watcher, the initial events, and the revision that these show. Raises Compacted.

        Stored versions are immutable, whatever is written while the events are sent.
        """
        # atomic: no await between the initial objects and the watcher's position
        store, gvr = self._core.store, call.hub.storage
        if not plan.initial:
            return store.watch(gvr, plan.namespace, plan.since), iter(()), plan.since
        since = store.revision if call.at is None else call.at
        objects = store.list(gvr, plan.namespace, at=call.at)
        events = (Event("ADDED", stored, None) for stored in objects)
        return store.watch(gvr, plan.namespace, since), events, since

    async def _in_turns(
        self, call: Call, chosen: Selection, events: Iterable[Event], watcher: Watcher, part: Part
    ) -> AsyncIterator[bytes]:
        """The frames of events, in chunks of up to _BATCH, and of no more than a turn makes. Raises ApiError.

        It waits for turns as all who work do, and many changes become one sync. If it is late it has a part of each
        turn instead: else its client would have to list everything again, and be late for that list, too.
        """
        prepares, turns = self._core.prepares(call.served), Turns.of_loop()
        made: list[bytes] = []
        size = 0
        turns.begin()
        for event in events:
            if prepares:  # until the next await, so each by itself
                await self._core.prepare(call.served, *_seen(chosen, event), cached=True)
            shown = (event.type, event.stored) if chosen.everything else _picked(chosen, event)
            if shown is not None and shown[1] is not event.stored:
                await self._core.prepare(call.served, shown[1], cached=True)
            if shown is not None:
                whole = shown == (event.type, event.stored)
                made.append(frame := call.media.event(event) if whole else call.media.frame(*shown))
                size += len(frame)
            late = watcher.late
            over = part.is_over() if late else turns.is_over()
            if over or len(made) == _BATCH or size >= _CHUNK_BYTES:
                if made:
                    yield b"".join(made)  # a client in this process handles them before it asks for more
                    made.clear()
                    size = 0
                if not late:
                    await turns.pause()
                elif part.is_over():
                    await part.next()
        if made:
            yield b"".join(made)

    async def _events(self, call: Call, plan: _Plan, watcher: Watcher, part: Part) -> AsyncIterator[bytes]:
        clock, store = self._core.clock, self._core.store
        chosen, media = plan.chosen, call.media
        now = clock.monotonic()
        ends_at = now + plan.timeout_s
        mark_at = _next_mark(now, ends_at) if plan.bookmarks else inf
        wake = clock.call_later(mark_at - now, watcher.wake) if mark_at < inf else None
        try:
            while not watcher.closed:
                await watcher.wait()
                try:
                    events = watcher.take(_BATCH)
                except Compacted as error:
                    yield _error(_too_old(error))
                    return
                if plan.ahead:
                    events = [event for event in events if event.revision > plan.since]
                async for chunk in self._in_turns(call, chosen, events, watcher, part):
                    yield chunk
                now = clock.monotonic()
                if now >= mark_at and not (watcher.behind or watcher.held):
                    mark_at = _next_mark(now, ends_at)
                    yield media.bookmark(self._mark(call, store.revision))
                    if wake is not None:
                        wake.cancel()
                    wake = clock.call_later(mark_at - now, watcher.wake) if mark_at < inf else None
        finally:
            if wake is not None:
                wake.cancel()

    def _mark(self, call: Call, revision: int, *, initial_end: bool = False) -> Doc:
        """The object of a bookmark. That of a built-in kind has the fields without omitempty."""
        info, schemas = call.resource, self._core.schemas
        metadata: Doc = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        node = None if info.custom else schemas.node(target_of(info))
        empty = {} if node is None else cast("Doc", schemas.normalizers.run(node, {}))
        return {**empty, "kind": info.kind, "apiVersion": info.api_version, "metadata": metadata}


def _next_mark(now: float, ends_at: float) -> float:
    """When the next bookmark is due; infinity where none is."""
    due = min(now + BOOKMARK_S, ends_at - LAST_BOOKMARK_S)
    return due if due > now else inf


def _seen(chosen: Selection, event: Event) -> Iterator[Stored]:
    """The objects that are compared with a selection."""
    yield event.stored
    if event.previous is not None and not chosen.everything:
        yield event.previous


def _picked(chosen: Selection, event: Event) -> tuple[str, Stored] | None:
    """The type and object of the event for a selection, or None."""
    previous = event.previous
    after = event.type != "DELETED" and chosen.matches(event.stored)
    before = previous is not None and chosen.matches(previous)
    if after:
        return event.type if before == (event.type == "MODIFIED") else "ADDED", event.stored
    if not before:
        return None
    if event.type == "DELETED":
        return event.type, event.stored
    assert previous is not None
    return "DELETED", previous.at(event.revision)


def _too_old(error: Compacted) -> ApiError:
    return expired(f"too old resource version: {error.asked} ({error.oldest})")


def _error(error: ApiError) -> bytes:
    return frame_of("ERROR", codec.encode(error.status))
