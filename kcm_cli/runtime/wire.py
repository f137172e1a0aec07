"""Decodes the bytes of a watch into typed events, in one pass.

A watch arrives as JSON lines in chunks of any size. A line of a kind that keeps no raw document is decoded straight
into an event with the typed object; for other kinds the object's bytes are cut out first and kept. The order of keys,
spaces and line breaks may be any, since proxies may rewrite them.

upstream: staging/src/k8s.io/apimachinery/pkg/watch/streamwatcher.go, pkg/util/framer
"""

import re
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object, PartialObject
from kcm_cli.machinery.nesting import without_escapes
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest import errors
from kcm_cli.rest.reading import unreadable
from kcm_cli.rest.transport import Unreadable

T = TypeVar("T", bound=Object)

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
_BY_FREQUENCY = (MODIFIED, ADDED, DELETED)
CHANGES = frozenset(_BY_FREQUENCY)
KNOWN = CHANGES | {BOOKMARK, ERROR}

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
LONGEST_EVENT = 64 * 1024 * 1024
"""Bytes; an object of etcd's 1.5 MiB is far below that in any notation."""
_BRACKETS = re.compile(rb'"[^"]*+"?|[{}\[\]]')
"""A string, also one that does not end, or a bracket, in a text without escapes."""
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change: ADDED, MODIFIED or DELETED, and the object."""

    type: str
    object: T


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """The version that the watch has reached. ``last``: the end of the initial events of a WatchList."""

    resource_version: str
    last: bool


class BrokenEvent(msgspec.Struct, frozen=True, gc=False):
    """One change of an object that cannot be decoded."""

    type: str
    object: Undecodable


class _RawEvent(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


class EventDecoder(Generic[T]):
    """Decodes the events of one watch.

    ``skipped``: called for events that are skipped, those of unknown types and those with objects of another kind.
    ``lenient``: an object with bytes that are not UTF-8 becomes a BrokenEvent; otherwise it raises Unreadable, since
    the answer may have been corrupted on its way.
    """

    def __init__(
        self,
        resource: Resource[T],
        *,
        metadata_only: bool = False,
        lenient: bool = False,
        skipped: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._resource = resource
        self._metadata_only = metadata_only
        self._lenient = lenient
        self._skipped = skipped
        self._own = _beginnings(resource.heads(metadata_only=metadata_only))
        self._rest: list[bytes] = []
        self._size = 0
        self._pieces = _Pieces()
        # Generic structs are made per view; the decoder of each is cached by the codec.
        self._typed = WatchEvent[resource.view]  # type: ignore[name-defined]  # a view is a type at run time

    def feed(self, chunk: bytes) -> Iterator[WatchEvent[T] | BrokenEvent | Bookmark]:
        """The events that this chunk completes.

        Raises rest.errors.ApiError for an ERROR event, Unreadable for a line that is not an event.
        """
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:  # faster than split
            line = chunk[start:end]
            start = end + 1
            if self._rest:
                line = b"".join((*self._rest, line))
                self._rest, self._size = [], 0
            if line:
                yield from self._line(line)
        if last := chunk[start:]:
            self._rest.append(last)
            self._size += len(last)
            if self._size > LONGEST_EVENT:
                raise Unreadable(f"the watch cannot be read: an event is longer than {LONGEST_EVENT} bytes")

    def _line(self, line: bytes) -> Iterator[WatchEvent[T] | BrokenEvent | Bookmark]:
        if not self._pieces.pending:
            if not self._resource.keeps_raw and codec.is_utf8(line):
                try:
                    event = codec.decode(line, self._typed)
                except codec.DecodeError:
                    pass  # the slow way finds out what it is
                else:
                    known = event.type in CHANGES and event.object.metadata.name
                    if known and (
                        line.startswith(self._own) or not self._foreign(codec.decode(line, _RawEvent).object)
                    ):
                        yield event
                        return
            try:
                raw = codec.decode(line, _RawEvent)
            except codec.DecodeError:
                pass  # perhaps not one event to a line
            else:
                yield from self._raw(raw, own=line.startswith(self._own))
                return
        for piece in self._pieces.add(line):
            try:
                yield from self._raw(codec.decode(piece, _RawEvent))
            except codec.DecodeError as error:
                raise unreadable(error) from None

    def _raw(self, raw: _RawEvent, *, own: bool = False) -> Iterator[WatchEvent[T] | BrokenEvent | Bookmark]:
        """own: whether the object is known to be of the watch's kind."""
        if raw.type == ERROR:
            raise errors.from_status(raw.object)
        if raw.type not in KNOWN:
            self._skipped(f"an event of type {quote(raw.type[:64])}")
        elif not own and (what := self._foreign(raw.object)):
            self._skipped(f"an object of another kind: {what}")
        elif raw.type == BOOKMARK:
            try:
                yield _bookmark(raw.object)
            except codec.ShapeError as error:
                self._skipped(f"a bookmark that cannot be decoded: {error}")
            except codec.DecodeError as error:
                raise unreadable(error) from None
        else:
            obj = self._resource.decode_or_explain(raw.object)
            if not isinstance(obj, Undecodable):
                yield WatchEvent(raw.type, obj)
            elif obj.spoilt and not self._lenient:
                raise Unreadable(f"the watch cannot be read: {obj.why}")
            else:
                yield BrokenEvent(raw.type, obj)

    def _foreign(self, data: msgspec.Raw) -> str:
        return self._resource.foreign(data, metadata_only=self._metadata_only)


def _beginnings(heads: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The first bytes of events whose objects begin with these bytes. Other events are parsed."""
    return tuple(b'{"type":"%s","object":%s' % (type_.encode(), head) for head in heads for type_ in _BY_FREQUENCY)


def _bookmark(data: msgspec.Raw) -> Bookmark:
    """Decode a bookmark. Only its metadata counts; servers fill other fields with zero values. Raises DecodeError."""
    partial = codec.decode(data, PartialObject)
    return Bookmark(partial.metadata.resource_version, partial.annotations.get(INITIAL_EVENTS_END) == "true")


class _Pieces:
    """Splits JSON objects that are not one to a line: several on one line, or one on several.

    A string never spans lines, so that brackets can be counted line by line.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._depth = 0

    @property
    def pending(self) -> bool:
        """Whether an object has begun and not ended."""
        return self._depth > 0

    def add(self, line: bytes) -> list[bytes]:
        """The objects that this line completes. Raises Unreadable for other text, or an object that was cut off."""
        if self.pending and _is_event(line):
            raise Unreadable("the watch cannot be read: an event was cut")
        whole: list[bytes] = []
        start = 0
        for match in _BRACKETS.finditer(without_escapes(line)):
            self._depth += _STEPS.get(match[0], 0)
            if self._depth <= 0:
                whole.append(b"".join((*self._parts, line[start : match.end()])))
                self._parts, self._size, self._depth, start = [], 0, 0, match.end()
        rest = line[start:].strip()
        if rest and not self.pending:
            raise Unreadable("the watch cannot be read: there is something between its events")
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > LONGEST_EVENT:
                raise Unreadable(f"the watch cannot be read: an event is longer than {LONGEST_EVENT} bytes")
        return whole


def _is_event(line: bytes) -> bool:
    event = codec.decode_or_none(line, _RawEvent)
    return event is not None and event.type in KNOWN
