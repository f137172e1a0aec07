"""Decodes the bytes of a watch in protobuf into typed events.

A frame is its length (4 bytes, big-endian) and a WatchEvent: the type, and an object in its envelope. Frames arrive in
chunks of any size.

upstream: staging/src/k8s.io/apimachinery/pkg/util/framer, pkg/apis/meta/v1/watch.go
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

from kcm_cli.api.protobuf.views import Reader, reader_of
from kcm_cli.api.resource import PARTIAL, Resource, Undecodable
from kcm_cli.machinery import codec, upb
from kcm_cli.machinery.envelope import MAGIC, MEDIA_TYPE, type_of
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object, PartialObject
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.upb import BYTES, MESSAGE, Declared, Parse
from kcm_cli.rest import errors
from kcm_cli.rest.transport import Unreadable
from kcm_cli.runtime.wire import (
    BOOKMARK,
    ERROR,
    INITIAL_EVENTS_END,
    KNOWN,
    LONGEST_EVENT,
    Bookmark,
    BrokenEvent,
    EventDecoder,
    WatchEvent,
)

T = TypeVar("T", bound=Object)
_HEAD = 4


def decoder_of(
    headers: Mapping[str, str],
    resource: Resource[T],
    *,
    metadata_only: bool = False,
    lenient: bool = False,
    skipped: Callable[[str], None] = lambda why: None,
) -> "EventDecoder[T] | FrameDecoder[T]":
    """The decoder of a watch's events, by the media type of its answer. The parameters are those of EventDecoder."""
    packed = headers.get("content-type", "").startswith(MEDIA_TYPE) and upb.available()
    decoder = FrameDecoder if packed else EventDecoder
    return decoder(resource, metadata_only=metadata_only, lenient=lenient, skipped=skipped)


@cache
def _parse_event() -> Parse:
    raw, type_ = Declared("object", 2, MESSAGE, message="Raw"), Declared("type", 1, BYTES)
    return upb.parsers((("Raw", (Declared("raw", 1, BYTES),)), ("Event", (type_, raw))))["Event"]


@cache
def _parse_envelope() -> Parse:
    return upb.parsers((("Unknown", (Declared("type", 1, BYTES), Declared("raw", 2, BYTES))),))["Unknown"]


class FrameDecoder(Generic[T]):
    """Decodes the events of one watch. The parameters are those of EventDecoder."""

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
        self._own = b""
        self._rest: list[bytes] = []
        self._size = 0
        self._needed = _HEAD
        self._errors = upb.decode_error()
        self._event, self._envelope = _parse_event(), _parse_envelope()

    def feed(self, chunk: bytes) -> Iterator[WatchEvent[T] | BrokenEvent | Bookmark]:
        """The events that this chunk completes.

        Raises rest.errors.ApiError for an ERROR event, Unreadable for bytes that are not events.
        """
        if self._rest:
            self._rest.append(chunk)
            self._size += len(chunk)
            if self._size < self._needed:
                return
            chunk = b"".join(self._rest)
            self._rest.clear()
        start, end = 0, len(chunk)
        while True:
            self._needed = _HEAD
            if end - start >= _HEAD:
                size = int.from_bytes(chunk[start : start + _HEAD])
                if size > LONGEST_EVENT:
                    raise Unreadable(f"the watch cannot be read: an event is longer than {LONGEST_EVENT} bytes")
                self._needed = _HEAD + size
            if end - start < self._needed or start == end:
                break
            frame = chunk[start + _HEAD : start + self._needed]
            start += self._needed
            yield from self._frame(frame)
        if start < end:
            self._rest.append(chunk[start:])
        self._size = end - start

    def _frame(self, frame: bytes) -> Iterator[WatchEvent[T] | BrokenEvent | Bookmark]:
        try:
            event = self._event(frame)
            body = event.object.raw
            if not body.startswith(MAGIC):
                raise FormatError("its object is not in an envelope")
            envelope = self._envelope(body[len(MAGIC) :])
            type_ = event.type.decode("ascii", "replace")
            what = "" if envelope.type == self._own else self._foreign(envelope.type)
        except (FormatError, self._errors) as error:
            if not self._lenient:
                raise Unreadable(f"the watch cannot be read: {error}") from None
            self._skipped(f"an event that cannot be decoded: {error}")
            return
        if type_ == ERROR:
            raise errors.from_status(body)
        if type_ not in KNOWN:
            self._skipped(f"an event of type {quote(type_[:64])}")
        elif what:
            self._skipped(f"an object of another kind: {what}")
        elif type_ == BOOKMARK:
            yield from self._bookmark(envelope.raw)
        else:
            yield self._change(type_, envelope.raw)

    def _change(self, type_: str, data: bytes) -> WatchEvent[T] | BrokenEvent:
        obj = self._resource.read_message(data, metadata_only=self._metadata_only)
        if not isinstance(obj, Undecodable):
            return WatchEvent(type_, obj)
        if obj.spoilt and not self._lenient:
            raise Unreadable(f"the watch cannot be read: {obj.why}")
        return BrokenEvent(type_, obj)

    def _bookmark(self, data: bytes) -> Iterator[Bookmark]:
        try:
            partial = _partial().read(data)
        except codec.DecodeError as error:
            self._skipped(f"a bookmark that cannot be decoded: {error}")
        else:
            yield Bookmark(partial.metadata.resource_version, partial.annotations.get(INITIAL_EVENTS_END) == "true")

    def _foreign(self, type_meta: bytes) -> str:
        """The kind of an object of another kind; empty if it is of this one, whose bytes are kept. Raises
        FormatError."""
        api_version, kind = type_of(type_meta)
        if not self._resource.is_foreign(api_version, kind, metadata_only=self._metadata_only):
            self._own = type_meta
            return ""
        return f"{quote(kind)} ({quote(api_version)})"


def _partial() -> Reader[PartialObject]:
    reader: Reader[Any] | None = reader_of(PartialObject, PARTIAL)
    assert reader is not None
    return reader
