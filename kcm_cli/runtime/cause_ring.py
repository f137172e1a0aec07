"""The causes of what happened lately: syncs, writes and retries, in a fixed number of bytes.

What it holds are names, verbs, versions and words of the code: no part of an object's body and no text of an answer.
Texts are cut, so that the size of an entry is bounded, too. The oldest entries make room.

Times are monotonic: that a write was sent before a cache showed a change must not depend on steps of the wall clock.
``shift`` added to one is Unix time, as it was counted at the start.

upstream: none
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.recent import Bounded
from kcm_cli.runtime.causes import DELETED, LISTED, Cause, Causes, Change, Due, Tick, Work

if TYPE_CHECKING:
    from kcm_cli.runtime.spans import Spans

MOST_BYTES = 4 << 20
OVERHEAD = 72
"""Bytes of memory that an entry takes beside its own."""
_TEXT = 256
_KEY = 512
_LONG = 2048
_ENDS = 4096
"""Objects whose end is remembered, so that it is recorded once."""
_IDENTITY = 64
"""A longer uid or version is left out: a part of it could be that of another object."""

EVICTED = "evicted: "
"""How the reason of a write begins that ends a pod and does not delete it."""
QUIET = frozenset(
    (
        "events",
        "nodes/proxy",
        "pods/attach",
        "pods/exec",
        "pods/portforward",
        "pods/proxy",
        "selfsubjectaccessreviews",
        "serviceaccounts/token",
        "services/proxy",
        "subjectaccessreviews",
        "tokenreviews",
    )
)
"""Resources whose writes change no object, or are no causes."""
_MESSAGE = 2048
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")
_REFUSERS = (
    ('admission webhook "', '" denied the request', "admission webhook"),
    ('failed calling webhook "', '": ', "failed webhook"),
    (" is forbidden: exceeded quota: ", ",", "exceeded quota"),
    (" is forbidden: ValidatingAdmissionPolicy '", "' with binding ", "ValidatingAdmissionPolicy"),
)
"""Around the name of what refuses. A webhook is first: the rest of its message is its own text."""


class Sync(msgspec.Struct, frozen=True, array_like=True, tag="sync", tag_field="entry"):
    """A sync of a key that did something, or a pass (queue and key are empty). at: its start, in seconds."""

    number: int
    at: float
    controller: str
    queue: str
    kind: str
    key: str
    causes: tuple[Change | Tick, ...] = ()
    more: int = 0


class Wrote(msgspec.Struct, frozen=True, array_like=True, tag="write", tag_field="entry"):
    """A write and its answer.

    sync: the number of the sync that wrote, 0 for none. at, took_s: when it was sent, and how long the answer took.
    kind: "" where only the resource is known. code: of HTTP; 0 for no answer. uid, version: of the object in the
    answer. refusal: the reason of the refusal, and what refused it if that is known. agent: of a write that an API
    server records, the client's user agent; ``controller`` is then the user. manager: the field manager.
    """

    sync: int
    at: float
    took_s: float
    controller: str
    verb: str
    group: str
    resource: str
    kind: str
    key: str
    code: int
    uid: str = ""
    version: str = ""
    reason: str = ""
    owner: str = ""
    refusal: str = ""
    agent: str = ""
    manager: str = ""


class Later(msgspec.Struct, frozen=True, array_like=True, tag="later", tag_field="entry"):
    """A sync asks for another one. after_s: when; negative if a failed key is given up. error: why it failed, a word;
    "" if it did not."""

    sync: int
    at: float
    after_s: float
    error: str = ""


class Saw(msgspec.Struct, frozen=True, array_like=True, tag="saw", tag_field="entry"):
    """The end of an object, or its first version with a deletionTimestamp that queued a key, whatever its sync did."""

    change: Change

    @property
    def at(self) -> float:
        return self.change.at


Entry = Sync | Wrote | Later | Saw
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Entry)


def weight(sync: Sync, cause: Change | Tick, writer: str | None) -> int:
    """Which of several causes a sync is shown under, the one with the largest: the end of its own object first, then
    what others did to it, what its own controller wrote last. writer: the controller that made a change; None for
    another client's."""
    if isinstance(cause, Tick):
        return 4 if cause.sync else 0
    own = (cause.kind, cause.key) == (sync.kind, sync.key)
    if own and cause.deleting:
        return 7
    if writer is not None:
        return 1 if writer == sync.controller else 6 if own else 5
    if cause.type == LISTED:
        return 0
    return 6 if own else 5 if cause.type == DELETED else 3


class CauseRing:
    """The entries. Used from the loop of the controllers; ``snapshot`` may be decoded by any thread.

    spans: made of what happens, too, while it happens; None for none.
    """

    def __init__(self, clock: Clock, most_bytes: int = MOST_BYTES) -> None:
        self._clock = clock
        self._most = most_bytes
        self._entries: deque[bytes] = deque()
        self._bytes = self._put = self._syncs = 0
        self._seen: Bounded[tuple[str, bool], None] = Bounded(_ENDS)
        self.spans: Spans | None = None
        self.started = clock.now().timestamp()
        self.shift = self.started - clock.monotonic()

    @property
    def size(self) -> int:
        """The bytes that the entries take; at most ``most_bytes``."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.monotonic()

    def note(self, work: Work) -> int:
        """Record a sync, unless that was done; returns its number."""
        if not work.number:
            for cause in work.causes.found:
                if type(cause) is Due:
                    self.note(cause.work)
            self._syncs += 1
            work.number = self._syncs
            causes = tuple([_settled(cause) for cause in work.causes.found])
            key, more = work.key[:_KEY], work.causes.more
            sync = self.put(Sync(work.number, work.at, work.controller, work.queue, work.kind, key, causes, more))
            if self.spans is not None and isinstance(sync, Sync):
                self.spans.noted(sync, work)
        return work.number

    def put(self, entry: Entry) -> Entry:
        """Add an entry. The oldest ones are forgotten. Returns it as it is kept: texts of a long one are cut."""
        encoded = _ENCODER.encode(entry)
        if len(encoded) > _LONG:
            entry = _shortened(entry)
            encoded = _ENCODER.encode(entry)
        self._entries.append(encoded)
        self._put += 1
        self._bytes += len(encoded) + OVERHEAD
        while self._bytes > self._most:
            self._bytes -= len(self._entries.popleft()) + OVERHEAD
        return entry

    def asked(self, entry: Later) -> None:
        """Record that a sync asked for another one."""
        self.put(entry)
        if self.spans is not None:
            self.spans.later(entry)

    def wrote(self, entry: Wrote) -> None:
        """Record a write of which nothing was known before its answer. One of a sync has a span."""
        self.put(entry)
        if self.spans is not None and entry.sync:
            self.spans.found(entry)

    def ended(self, work: Work) -> None:
        """A sync or pass is over."""
        if self.spans is not None:
            self.spans.ended(work, self.now())

    def saw(self, causes: Causes) -> None:
        """Record those that are the end of an object or the beginning of it, once for each object."""
        for cause in causes.found:
            if not isinstance(cause, Change) or not (cause.deleting or cause.type == DELETED):
                continue
            end = cause.uid[:_IDENTITY], cause.type == DELETED
            if end not in self._seen:
                self._seen[end] = None
                self.put(Saw(_cut_change(cause)))

    def snapshot(self) -> "Snapshot":
        """What the ring holds now."""
        return Snapshot(self.started, self.shift, self._put, tuple(self._entries))


class Snapshot(msgspec.Struct, frozen=True):
    """The entries of a ring at a time. started: when the process started to record, Unix
    time. shift: see the module. total: all that were ever added."""

    started: float
    shift: float
    total: int
    encoded: tuple[bytes, ...]

    @property
    def forgotten(self) -> int:
        """The number of entries that made room for others."""
        return self.total - len(self.encoded)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Decode the entries, from the one with this number on (the first of all has 0)."""
        for index in range(max(0, after - self.forgotten), len(self.encoded)):
            yield _DECODER.decode(self.encoded[index])


def _cut(entry: Wrote) -> Wrote:
    """With bounded texts."""
    return Wrote(
        entry.sync,
        entry.at,
        entry.took_s,
        entry.controller[:_TEXT],
        entry.verb[:_TEXT],
        entry.group[:_TEXT],
        entry.resource[:_TEXT],
        entry.kind[:_TEXT],
        entry.key[:_KEY],
        entry.code,
        entry.uid,
        entry.version,
        entry.reason[:_TEXT],
        entry.owner[:_KEY],
        entry.refusal[:_TEXT],
        entry.agent[:_TEXT],
        entry.manager[:_TEXT],
    )


def identity(text: str) -> str:
    """A uid or version; "" for one that is too long for any."""
    return text if len(text) <= _IDENTITY else ""


def _settled(cause: Cause) -> Change | Tick:
    return Tick(cause.what, cause.work.number) if isinstance(cause, Due) else cause


def _shortened(entry: Entry) -> Entry:
    """With bounded texts."""
    if isinstance(entry, Wrote):
        return _cut(entry)
    if isinstance(entry, Sync):
        return replace(
            entry, causes=tuple(_cut_change(one) if isinstance(one, Change) else one for one in entry.causes)
        )
    return entry


def _cut_change(cause: Change) -> Change:
    return Change(
        cause.type,
        cause.group[:_TEXT],
        cause.kind[:_TEXT],
        cause.key[:_KEY],
        identity(cause.uid),
        identity(cause.version),
        cause.at,
        cause.deleting,
        cause.why,
    )


def refusal(reason: str, message: str) -> str:
    """What refused a write: the reason of the Status, and the name of the quota, webhook or policy. Nothing else of the
    message is kept, as it may have values of the object."""
    for before, after, what in _REFUSERS:
        _, found, rest = message[:_MESSAGE].partition(before)
        if found:
            name, end, _ = rest.partition(after)
            return f"{reason}: {what} {name}" if end and name and _NAME.issuperset(name) else reason
    return reason
