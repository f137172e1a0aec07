"""Watches: a stream of frames from a revision on, filtered by a selection."""

from collections.abc import AsyncIterator

from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Stream
from kcm_cli.sandbox.apiserver.registry import refusals
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.selection import Selection, selection
from kcm_cli.sandbox.apiserver.store import Compacted, Event, Stored, Watcher


class Watching:
    """Answers watch."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def watch(self, call: Call) -> Stream:
        """Open a watch. Raises ApiError."""
        store = self._core.store
        chosen = selection(call.resource, call.query.get("labelSelector", ""), call.query.get("fieldSelector", ""))
        version = call.query.get("resourceVersion", "")
        initial: list[Stored] = []
        since = store.revision
        if version in ("", "0"):
            initial = [s for s in store.scan(call.served.storage, call.namespace) if chosen.matches(s)]
        else:
            since = int(version)
        watcher = store.watch(call.served.storage, call.namespace, since)
        headers = {"content-type": call.media.watch_type}
        return Stream(200, headers, self._frames(call, chosen, initial, watcher))

    async def _frames(
        self, call: Call, chosen: Selection, initial: list[Stored], watcher: Watcher
    ) -> AsyncIterator[bytes]:
        with watcher:
            if initial:
                yield b"".join(call.media.frame("ADDED", stored) for stored in initial)
            while True:
                await watcher.wait()
                frames = [frame for event in watcher.take() if (frame := _frame(call, chosen, event))]
                if frames:
                    yield b"".join(frames)


def _frame(call: Call, chosen: Selection, event: Event) -> bytes | None:
    if chosen.everything:
        return call.media.event(event)
    return call.media.event(event) if chosen.matches(event.stored) else None
