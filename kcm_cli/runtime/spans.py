"""Spans of what the record of causes keeps: syncs, their writes, and the changes of other clients that they followed.

A trace has one first cause. Its id is made of the uid and version of the object whose change that was, so that the next
leader, which finds this version in its first list, goes on with the same trace. What follows from kcm's own writes
belongs to the trace of the write; further causes of a sync are links. A retry, and what a sync asked to be done later,
is beside its first attempt, linked to the one before; after ten minutes it begins a trace of its own, so that traces
end.

As in ``trace.join``, a write is the cause of a change if its answer has the uid and version that the cache showed, and
of a deletion if it deleted that uid. Here this is decided when a sync does something for the first time, and a watch
may be faster than an answer: where no answer has them, the only write to an object of this name that is under way is
taken for the cause, which an attribute says. A write whose change began a trace before its answer was read gets a link
to it.

Whether a trace is exported is decided by its id, so that it is whole. Names, versions, verbs and words are exported:
what the record has, and no more.

upstream: none; its manager has no spans. The nearest: component-base/tracing, which other components use.
"""

from collections.abc import Callable
from hashlib import blake2b

import msgspec

from kcm_cli.component.tracing_config import ALL
from kcm_cli.machinery.meta import split_key
from kcm_cli.machinery.recent import Bounded
from kcm_cli.runtime.cause_ring import Later, Sync, Wrote, weight
from kcm_cli.runtime.causes import ADDED, DELETED, LISTED, QUEUED, Change, Tick, Work

MOST = 1 << 14
"""Contexts of each sort that are remembered: what follows from older ones begins a trace of its own."""
SYNC, WRITE, CHANGE = "sync", "write", "change"
_DONE = {"ADDED": "created", "MODIFIED": "changed", DELETED: "deleted", LISTED: "listed"}
_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
_LOW = (1 << 64) - 1

CREATION, ANSWERED_LATER, FURTHER, BEFORE = "creation", "answer read later", "further cause", "sync before"
INFERRED = "inferred: by name, its answer had not been read"
LONGEST_S = 600.0
"""For so long after its first sync what the clock does for a key belongs to the same trace."""
Value = str | int | float | bool


class SpanContext(msgspec.Struct, frozen=True, gc=False):
    """trace: 128 bits. span: 64 bits. sampled: whether the trace is exported."""

    trace: int
    span: int
    sampled: bool

    @property
    def traceparent(self) -> str:
        """The header of W3C's Trace Context."""
        return f"00-{self.trace:032x}-{self.span:016x}-{'01' if self.sampled else '00'}"


class Link(msgspec.Struct, frozen=True):
    """To another span. why: one of CREATION, of the object that has changed; ANSWERED_LATER, what a write's change
    began; FURTHER, besides the parent; BEFORE, the sync that asked the clock for this one."""

    to: SpanContext
    why: str


class Span(msgspec.Struct, frozen=True):
    """kind: SYNC, WRITE or CHANGE. start, end: Unix seconds. error: what failed, in a few words; "" for nothing."""

    kind: str
    name: str
    context: SpanContext
    parent: SpanContext | None
    start: float
    end: float
    attributes: dict[str, Value]
    links: tuple[Link, ...] = ()
    error: str = ""


class _Known(msgspec.Struct, frozen=True):
    """A sync. base: what its retries are below. first: when the first one of these began."""

    context: SpanContext
    base: SpanContext
    first: float


class _Open(msgspec.Struct):
    """A sync that has not ended. later: what it asked for."""

    entry: Sync
    work: Work
    context: SpanContext
    parent: SpanContext | None
    links: tuple[Link, ...]
    inferred: bool
    later: Later | None = None


class _Made(msgspec.Struct, frozen=True):
    """A write whose answer was read, or, if it is inferred, one or several of a sync that are under way."""

    context: SpanContext
    at: float
    controller: str
    inferred: bool = False


class Sending(msgspec.Struct, frozen=True):
    """A write that is about to be sent. sync: 0 for none. key: ends as the generateName of what has no name yet."""

    sync: int
    at: float
    controller: str
    verb: str
    kind: str
    key: str

    def fits(self, change: Change) -> bool:
        """Whether it may be what made a change, by its name."""
        if self.kind != change.kind or self.at > change.at or (self.verb == "create") != (change.type == ADDED):
            return False
        return change.key == self.key or (self.key.endswith("-") and change.key.startswith(self.key))


class Spans:
    """Makes spans while things happen. Used from the loop of the controllers.

    instance: of this process, in the ids that are only its own. rate: of a million traces. shift: makes Unix time of
    monotonic seconds. export: gets each span once it has ended; it must not block.
    """

    def __init__(
        self, instance: str, rate: int, shift: float, export: Callable[[Span], None], most: int = MOST
    ) -> None:
        self._instance = instance
        self._bound = (rate << 64) // ALL
        self._shift = shift
        self._export = export
        self._count = 0
        self._syncs: Bounded[int, _Known] = Bounded(most)
        self._open: Bounded[int, _Open] = Bounded(most)
        self._sending: Bounded[int, tuple[Sending, SpanContext]] = Bounded(most)
        self._made: Bounded[tuple[str, str], _Made] = Bounded(most)
        self._deletions: Bounded[str, _Made] = Bounded(most)
        self._births: Bounded[str, SpanContext] = Bounded(most)
        self._changes: Bounded[tuple[str, str], SpanContext] = Bounded(most)

    # -- what happens

    def noted(self, entry: Sync, work: Work) -> None:
        """A sync or pass has a number: it does something, or what follows from it does."""
        parent, links, first, inferred = self._causes(entry)
        context = self._below(parent, SYNC, str(entry.number))
        self._syncs[entry.number] = _Known(context, parent or context, first)
        if not context.sampled:
            return
        opened = _Open(entry, work, context, parent, links, inferred)
        if work.ended:  # before it was known that something follows from it
            self._end(opened, work.ended)
        else:
            self._open[entry.number] = opened

    def later(self, entry: Later) -> None:
        """A sync has failed, or asked for another one."""
        opened = self._open.get(entry.sync)
        if opened is not None:
            opened.later = entry

    def ended(self, work: Work, at: float) -> None:
        """A sync or pass is over. at: monotonic seconds."""
        work.ended = at
        opened = self._open.pop(work.number, None) if work.number else None
        if opened is not None:
            self._end(opened, at)

    def context(self, sync: int) -> SpanContext | None:
        """Of a sync by its number; None for none, and for one that is not known any more."""
        known = self._syncs.get(sync) if sync else None
        return known.context if known is not None else None

    def sent(self, sending: Sending) -> SpanContext:
        """The context of a write that is about to be sent."""
        context = self._write(sending.sync)
        self._sending[context.span] = sending, context
        return context

    def wrote(self, entry: Wrote, context: SpanContext) -> None:
        """A write is over. context: what ``sent`` returned."""
        self._sending.pop(context.span, None)
        links: tuple[Link, ...] = ()
        if 200 <= entry.code < 300 and entry.uid:
            links = self._file(entry, _Made(context, entry.at, entry.controller))
        if context.sampled:
            parent = self.context(entry.sync)
            start = entry.at + self._shift
            self._export(
                Span(
                    WRITE,
                    f"{entry.verb} {entry.resource}",
                    context,
                    parent if parent is not None and parent.trace == context.trace else None,
                    start,
                    start + entry.took_s,
                    _of_write(entry),
                    links,
                    _failure(entry),
                )
            )

    def found(self, entry: Wrote) -> None:
        """A write is over that was not ``sent`` here."""
        self.wrote(entry, self._write(entry.sync))

    def close(self, at: float) -> None:
        """Export the syncs that have not ended, as they are cut off. at: monotonic seconds."""
        for opened in tuple(self._open.values()):
            self._open.pop(opened.entry.number, None)
            self._end(opened, at, "cancelled")

    # -- ids

    def _id(self, *parts: str) -> bytes:
        return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _below(self, parent: SpanContext | None, kind: str, number: str) -> SpanContext:
        """A span of this process: in the trace of its parent, or else in one of its own."""
        made = self._id(self._instance, kind, number)
        span = int.from_bytes(made[:8], "big") or 1
        if parent is not None:
            return SpanContext(parent.trace, span, parent.sampled)
        return self._root(int.from_bytes(made, "big"), span)

    def _root(self, trace: int, span: int) -> SpanContext:
        trace = trace or 1
        return SpanContext(trace, span, trace & _LOW < self._bound)

    def _write(self, sync: int) -> SpanContext:
        self._count += 1
        return self._below(self.context(sync), WRITE, str(self._count))

    # -- causes

    def _causes(self, entry: Sync) -> tuple[SpanContext | None, tuple[Link, ...], float, bool]:
        """The span that a sync is below, links to its further causes, when the first sync of its kind began, and
        whether the span is inferred."""
        sources = [(cause, self._writer(cause)) for cause in entry.causes]
        ranked = sorted(
            sources, key=lambda pair: -weight(entry, pair[0], pair[1].controller if pair[1] is not None else None)
        )
        found = [(pair, context) for pair in ranked if (context := self._source(*pair)) is not None]
        if not found:
            return None, (), entry.at, False
        ((cause, made), parent), further = found[0], dict.fromkeys(context for _, context in found[1:])
        links = tuple(Link(context, FURTHER) for context in further if context != parent)
        if isinstance(cause, Change) or cause.what == QUEUED:
            return parent, links, entry.at, made is not None and made.inferred
        before = self._syncs.get(cause.sync)
        links = (Link(parent, BEFORE), *links)
        if before is None or entry.at - before.first > LONGEST_S:
            return None, links, entry.at, False
        return before.base, links, before.first, False

    def _writer(self, cause: Change | Tick) -> _Made | None:
        """The write that made a change."""
        if not isinstance(cause, Change) or not cause.uid or cause.type == LISTED:
            return None
        made = self._made.get((cause.uid, cause.version)) if cause.version else None
        if (made is None or made.at > cause.at) and cause.type == DELETED:
            made = self._deletions.get(cause.uid)
        if made is not None and made.at <= cause.at:
            return made
        return self._under_way(cause)

    def _under_way(self, change: Change) -> _Made | None:
        """The write, or the sync of several writes, that may have made a change and has no answer yet."""
        if (change.uid, DELETED if change.type == DELETED else change.version) in self._changes:
            return None  # what it is has been decided
        fitting = [pair for pair in self._sending.values() if pair[0].fits(change)]
        syncs = {sending.sync for sending, _ in fitting}
        if len(syncs) != 1:
            return None
        sending, context = fitting[0]
        above = context if len(fitting) == 1 else self.context(sending.sync)
        return _Made(above, sending.at, sending.controller, inferred=True) if above is not None else None

    def _source(self, cause: Change | Tick, made: _Made | None) -> SpanContext | None:
        if made is not None:
            return made.context
        if isinstance(cause, Tick):
            return self.context(cause.sync)
        return self._change(cause)

    def _change(self, change: Change) -> SpanContext:
        """The span of a change that no known write made: the beginning of a trace."""
        version = DELETED if change.type == DELETED else change.version
        place = (change.uid, version) if change.uid and version else (f"{change.kind} {change.key}", str(change.at))
        context = self._changes.get(place)
        if context is None:
            own = () if change.uid and version else (self._instance,)
            trace = int.from_bytes(self._id(CHANGE, *place, *own), "big")
            span = int.from_bytes(self._id(self._instance, CHANGE, *place)[:8], "big") or 1
            context = self._changes[place] = self._root(trace, span)
            if context.sampled:
                birth = self._births.get(change.uid) if change.uid else None
                at = change.at + self._shift
                links = (Link(birth, CREATION),) if birth is not None else ()
                name = f"{change.kind} {_DONE.get(change.type, change.type)}"
                self._export(Span(CHANGE, name, context, None, at, at, _of_change(change), links))
        return context

    def _file(self, entry: Wrote, made: _Made) -> tuple[Link, ...]:
        """Remember a write; links to what its change began before the answer was read."""
        shown: list[SpanContext | None] = []
        if entry.version:
            if self._made.get((entry.uid, entry.version)) is None:
                self._made[entry.uid, entry.version] = made
            shown.append(self._changes.get((entry.uid, entry.version)))
        if entry.verb == "create" and "/" not in entry.resource:
            self._births[entry.uid] = made.context
        if entry.verb == "delete":
            self._deletions[entry.uid] = made
            shown.append(self._changes.get((entry.uid, DELETED)))
        return tuple(Link(context, ANSWERED_LATER) for context in shown if context is not None)

    def _end(self, opened: _Open, at: float, error: str = "") -> None:
        entry, work, later = opened.entry, opened.work, opened.later
        attributes = _of_sync(entry, work)
        if opened.inferred:
            attributes["kcm.parent"] = INFERRED
        if later is not None:
            attributes["kcm.again_after_s"] = later.after_s
            error = error or later.error
        start = entry.at + self._shift
        name = f"{entry.controller} {'sync' if entry.queue else 'pass'}"
        end = max(start, at + self._shift)
        self._export(Span(SYNC, name, opened.context, opened.parent, start, end, attributes, opened.links, error))


def _of_object(kind: str, key: str) -> dict[str, Value]:
    namespace, name = split_key(key)
    found: dict[str, Value] = {"k8s.object.kind": kind, "k8s.object.name": name}
    return found | {"k8s.namespace.name": namespace} if namespace else found


def _of_change(change: Change) -> dict[str, Value]:
    found = _of_object(change.kind, change.key) | {
        "k8s.object.uid": change.uid,
        "k8s.object.resource_version": change.version,
        "kcm.change": change.type,
    }
    if change.group:
        found["k8s.object.group"] = change.group
    if change.deleting:
        found["kcm.deleting"] = True
    return found | {"kcm.reason": change.why} if change.why else found


def _of_sync(entry: Sync, work: Work) -> dict[str, Value]:
    found: dict[str, Value] = {"kcm.controller": entry.controller}
    if entry.queue:
        found |= {"kcm.queue": entry.queue, "kcm.attempt": work.attempt, "kcm.queue_wait_s": work.waited_s}
        found |= _of_object(entry.kind, entry.key) if entry.kind else {"kcm.key": entry.key}
    clock = [cause.what for cause in entry.causes if isinstance(cause, Tick)]
    if clock:
        found["kcm.clock"] = ", ".join(dict.fromkeys(clock))
    more = len(entry.causes) + entry.more
    return found | {"kcm.causes": more} if more > 1 else found


def _of_write(entry: Wrote) -> dict[str, Value]:
    found = _of_object(entry.kind, entry.key) | {
        "kcm.controller": entry.controller,
        "k8s.verb": entry.verb,
        "k8s.resource": entry.resource,
        "http.request.method": _METHODS.get(entry.verb, entry.verb.upper()),
    }
    optional: dict[str, Value] = {
        "k8s.object.group": entry.group,
        "k8s.object.uid": entry.uid,
        "k8s.object.resource_version": entry.version,
        "kcm.reason": entry.reason,
        "kcm.owner": entry.owner,
        "http.response.status_code": entry.code,
    }
    return found | {name: value for name, value in optional.items() if value}


def _failure(entry: Wrote) -> str:
    """Why a write has not succeeded; "" if it has."""
    return "" if 200 <= entry.code < 300 else entry.refusal or str(entry.code)
