"""The causes as JSON, as /debug/causes shows them: one declaration for who writes and who reads them.

upstream: none
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec
from msgspec.structs import astuple

from kcm_cli.machinery.meta import split_key
from kcm_cli.runtime.cause_ring import Entry, Later, Saw, Snapshot, Sync, Wrote
from kcm_cli.runtime.causes import Change, Tick


class ChangeDocument(Change, frozen=True, array_like=False, tag="change", tag_field="cause"):
    """See ``Change``."""


class TickDocument(Tick, frozen=True, array_like=False, tag="clock", tag_field="cause"):
    """See ``Tick``."""


class SyncDocument(Sync, frozen=True, array_like=False, tag="sync", tag_field="entry"):
    """See ``Sync``."""

    causes: tuple[ChangeDocument | TickDocument, ...] = ()


class WroteDocument(Wrote, frozen=True, array_like=False, tag="write", tag_field="entry", rename="camel"):
    """See ``Wrote``."""


class LaterDocument(Later, frozen=True, array_like=False, tag="later", tag_field="entry", rename="camel"):
    """See ``Later``."""


class SawDocument(Saw, frozen=True, array_like=False, tag="saw", tag_field="entry"):
    """See ``Saw``."""

    change: ChangeDocument


class CausesDocument(msgspec.Struct, frozen=True):
    """The causes of a manager. started: when it began to record; now: its time; both Unix time in seconds. total: the
    number of entries since then, from which the next question goes on. forgotten: those that made room."""

    started: float
    now: float
    total: int
    forgotten: int
    entries: tuple[SyncDocument | WroteDocument | LaterDocument | SawDocument, ...] = ()


class About(msgspec.Struct, frozen=True):
    """Which entries are asked for; "" for all. kind: in any case, or a resource's plural. since: Unix time."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    since: float = 0.0
    after: int = 0

    @property
    def _all(self) -> bool:
        return not (self.kind or self.namespace or self.name)

    def _fits(self, kind: str, key: str) -> bool:
        namespace, name = split_key(key)
        return (
            (not self.kind or kind.lower() == self.kind.lower())
            and (not self.namespace or namespace == self.namespace)
            and (not self.name or name == self.name)
        )

    def _names(self, entry: Entry) -> bool:
        match entry:
            case Sync():
                changes = (one for one in entry.causes if isinstance(one, Change))
                return self._fits(entry.kind, entry.key) or any(self._fits(one.kind, one.key) for one in changes)
            case Wrote():
                owner_kind, _, owner = entry.owner.partition(" ")
                plural = entry.resource.partition("/")[0]
                objects = ((entry.kind, entry.key), (plural, entry.key), (owner_kind, owner))
                return any(self._fits(kind, key) for kind, key in objects)
            case Saw():
                return self._fits(entry.change.kind, entry.change.key)
            case Later():
                return False

    def choose(self, entries: Iterable[Entry], shift: float = 0.0) -> list[Entry]:
        """Those that name the object, and the syncs that they belong to. shift: makes Unix time of theirs."""
        recent = [entry for entry in entries if entry.at + shift >= self.since]
        if self._all:
            return recent
        named = [self._names(entry) for entry in recent]
        syncs = set(chain.from_iterable(_numbers(e) for e, fits in zip(recent, named, strict=True) if fits))
        return [
            entry
            for entry, fits in zip(recent, named, strict=True)
            if fits or (not isinstance(entry, Wrote) and not syncs.isdisjoint(_numbers(entry)))
        ]


def _numbers(entry: Entry) -> Iterator[int]:
    if not isinstance(entry, Saw):
        yield entry.number if isinstance(entry, Sync) else entry.sync


def document(taken: Snapshot, about: About, now: float) -> bytes:
    """The JSON of what is asked for. Takes up to 0.2 s for a full ring: not for an event loop."""
    shift = taken.shift
    entries = tuple(_shown(entry, shift) for entry in about.choose(taken.entries(about.after), shift))
    return msgspec.json.encode(CausesDocument(taken.started, now, taken.total, taken.forgotten, entries))


def _shown(entry: Entry, shift: float) -> SyncDocument | WroteDocument | LaterDocument | SawDocument:
    at = entry.at + shift
    match entry:
        case Sync():
            causes = tuple(
                _change(one, shift) if isinstance(one, Change) else TickDocument(*astuple(one)) for one in entry.causes
            )
            return SyncDocument(
                entry.number, at, entry.controller, entry.queue, entry.kind, entry.key, causes, entry.more
            )
        case Wrote():
            return WroteDocument(entry.sync, at, *astuple(entry)[2:])
        case Saw():
            return SawDocument(_change(entry.change, shift))
        case Later():
            return LaterDocument(entry.sync, at, entry.after_s, entry.error)


def _change(change: Change, shift: float) -> ChangeDocument:
    return ChangeDocument(
        change.type,
        change.group,
        change.kind,
        change.key,
        change.uid,
        change.version,
        change.at + shift,
        change.deleting,
        change.why,
    )
