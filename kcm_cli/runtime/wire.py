"""Bytes of a list or watch into events, typed in one pass.

A watch arrives as JSON lines, cut anywhere. A line of a kind that keeps no raw document is decoded straight into an
event that holds the typed object; for the others the object's bytes are cut out first and kept.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object, PartialObject
from kcm_cli.rest import errors

T = TypeVar("T", bound=Object)

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_ERROR_PREFIX = b'{"type":"ERROR"'
_BOOKMARK_PREFIX = b'{"type":"BOOKMARK"'


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: T


class _RawEvent(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, frozen=True):
    """A page of a list whose items are still bytes."""

    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    @property
    def next_page(self) -> str:
        """The continue token, empty on the last page."""
        return self.metadata.continue_


class EventDecoder(Generic[T]):
    """Decodes the lines of one watch."""

    def __init__(self, resource: Resource[T]) -> None:
        self._resource = resource
        self._rest = b""
        # Generic structs are made per view; the decoder of each is cached by the codec.
        self._typed = WatchEvent[resource.view]  # type: ignore[name-defined]  # a view is a type at run time

    def feed(self, chunk: bytes) -> Iterator[WatchEvent[T]]:
        """The events that this chunk completes. Raises rest.errors.ApiError for an ERROR event."""
        lines = (self._rest + chunk if self._rest else chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line:
                yield self._decode(line)

    def _decode(self, line: bytes) -> WatchEvent[T]:
        if line.startswith(_ERROR_PREFIX):
            raise errors.from_status(codec.decode(line, _RawEvent).object)
        if line.startswith(_BOOKMARK_PREFIX):
            return self._bookmark(codec.decode(line, _RawEvent))
        if not self._resource.keeps_raw:
            try:
                return codec.decode(line, self._typed)
            except codec.DecodeError:
                pass  # an ERROR whose type does not come first, or a broken object: the slow way tells
        raw = codec.decode(line, _RawEvent)
        if raw.type == ERROR:
            raise errors.from_status(raw.object)
        if raw.type == BOOKMARK:
            return self._bookmark(raw)
        return WatchEvent(raw.type, self._resource.decode(raw.object))

    def _bookmark(self, raw: _RawEvent) -> WatchEvent[T]:
        """A bookmark has metadata only; servers fill the rest with whatever their kind makes of nothing."""
        partial = codec.decode(raw.object, PartialObject)
        return WatchEvent(BOOKMARK, self._resource.view(metadata=partial.metadata))


def initial_events_end(event: WatchEvent[T]) -> bool:
    """Whether this bookmark closes the initial events of a WatchList."""
    return event.object.annotations.get(INITIAL_EVENTS_END) == "true"
