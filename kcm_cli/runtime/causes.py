"""Why a key is in a queue: the changes, or the clock, that added it since it was last taken.

While an informer tells its listeners of a change, ``current`` returns it, and a queue keeps it with each key that is
added. While a key is synced, ``working`` returns its ``Work``: what is queued or written by it names it. Where neither
is known, a key has no cause, and none is made up.

upstream: none
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from kcm_cli.api.core import Pod
from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.machinery.meta import Object

MOST = 8
"""Causes that are kept with a key; more are counted."""
ADDED, MODIFIED, DELETED, LISTED = "ADDED", "MODIFIED", "DELETED", "LISTED"
"""LISTED: the object was there when its cache was first filled."""
RESYNC, RETRY, DELAY, PASS, QUEUED = "resync", "retry", "delay", "pass", "queued"
"""What a Tick is: QUEUED by the sync of another key or by a pass, without a delay."""


_DISRUPTION, _LONGEST_REASON = "DisruptionTarget", 64


class Change(msgspec.Struct, frozen=True, array_like=True, tag="change", tag_field="cause"):
    """A version of an object that a cache showed. key: namespace/name. at: when, monotonic seconds. deleting: whether
    it has a deletionTimestamp. why: of a Pod that goes, the reason of its condition DisruptionTarget."""

    type: str
    group: str
    kind: str
    key: str
    uid: str
    version: str
    at: float
    deleting: bool = False
    why: str = ""


class Tick(msgspec.Struct, frozen=True, array_like=True, tag="clock", tag_field="cause"):
    """The clock, or another sync. sync: the number of the sync that asked for it; 0 for none."""

    what: str
    sync: int = 0


class Due(msgspec.Struct, frozen=True):
    """What becomes a Tick: what a sync or pass asked for, which has a number only if it did something itself, or if
    what it asked for does."""

    what: str
    work: "Work"


Cause = Change | Tick | Due


class Causes(msgspec.Struct):
    """The causes of a key: at most MOST, and how many more there were."""

    found: list[Cause] = msgspec.field(default_factory=list)
    more: int = 0

    @property
    def is_full(self) -> bool:
        """Whether more are only counted."""
        return len(self.found) >= MOST

    def add(self, cause: Cause) -> None:
        """Keep a cause, or count it."""
        if len(self.found) < MOST:
            self.found.append(cause)
        else:
            self.more += 1

    def merge(self, others: "Causes") -> None:
        """Add those of an earlier time."""
        for cause in others.found:
            self.add(cause)
        self.more += others.more

    def shorten(self) -> None:
        """Forget syncs that did nothing but to wait once more: a key that is synced every minute has no chain of
        all its syncs. To be called when the key is taken."""
        for index, cause in enumerate(self.found):
            if type(cause) is not Due or cause.work.number:
                continue
            before = cause.work.causes
            others: list[Cause] = [one for one in before.found if not isinstance(one, Due)]
            if others or not before.found:
                before.found = others
            elif isinstance(first := before.found[0], Due):
                self.found[index] = Due(cause.what, first.work)


class Work(msgspec.Struct, kw_only=True):
    """A sync of a key, or a pass (without a key).

    note: gives it a number and records it, which happens with its first write or failure. number: 0 before.
    at: its start, monotonic seconds. attempt, waited_s, ended: for spans, if there are any: failures since the last
    success and this sync, seconds in the queue, and its end; 0 before.
    """

    controller: str
    queue: str
    kind: str
    key: str
    at: float
    causes: Causes
    note: Callable[["Work"], int]
    number: int = 0
    attempt: int = 1
    waited_s: float = 0.0
    ended: float = 0.0

    def noted(self) -> int:
        """Its number, under which it is recorded."""
        return self.number or self.note(self)


Told = Cause | tuple[str, Resource[Any], Object | Undecodable, Callable[[], float]] | None


class _Telling(threading.local):
    """What the listeners of this thread are being told. Listeners do not await, so no task sees another one's."""

    cause: Told = None


_TELLING = _Telling()
_WORKING: ContextVar[Work | None] = ContextVar("working", default=None)
RECORDED: ContextVar[bool] = ContextVar("recorded", default=False)
"""Set while this task sends a write that its sender records: a server in the same process does not."""


@contextmanager
def because(cause: Cause | None) -> Iterator[None]:
    """Keys that are queued within this block, which must not await, have this cause."""
    before, _TELLING.cause = _TELLING.cause, cause
    try:
        yield
    finally:
        _TELLING.cause = before


def tell(telling: Told) -> Told:
    """Set the change that listeners are about to get; returns the one before, which the caller sets again before it
    awaits. A change is a tuple, of which a Change is made once a key is queued; its last item returns monotonic
    seconds."""
    before, _TELLING.cause = _TELLING.cause, telling
    return before


def told() -> Cause | None:
    """The change that listeners are getting, or what ``because`` names."""
    cause = _TELLING.cause
    if isinstance(cause, tuple):
        change, resource, obj, now = cause
        meta, gvr = obj.metadata, resource.gvr
        deleting = meta.deletion_timestamp is not None
        why = _disruption(obj) if isinstance(obj, Pod) and (deleting or change == DELETED) else ""
        cause = Change(change, gvr.group, resource.kind, obj.key, meta.uid, meta.resource_version, now(), deleting, why)
        _TELLING.cause = cause
    return cause


def _disruption(pod: Pod) -> str:
    """A word of the API, so not a text of any length."""
    found = (one.reason for one in pod.status.conditions if one.type == _DISRUPTION and one.status == "True")
    reason = next(found, "")
    return reason if reason.isalnum() and len(reason) <= _LONGEST_REASON else ""


def current() -> Cause | None:
    """Why a key is queued now; None where that is not known."""
    cause = told()
    if cause is None and (work := _WORKING.get()) is not None:
        cause = Due(QUEUED, work)
    return cause


def is_caused() -> bool:
    """Whether ``current`` has a cause, which it may have to make."""
    return _TELLING.cause is not None or _WORKING.get() is not None


def later(what: str) -> Cause:
    """A cause for what the clock does later; it names the sync that asks for it."""
    work = _WORKING.get() if _TELLING.cause is None else None
    return Due(what, work) if work is not None else Tick(what)


def unrecorded(work: Work) -> int:
    """The ``note`` of work where there is no record."""
    return 0


def set_working(work: Work | None) -> None:
    """From now on, this task and those that it starts do this work."""
    _WORKING.set(work)


def working() -> Work | None:
    """The sync or pass that this task works for; None for none."""
    return _WORKING.get()


def is_recorded() -> bool:
    """Whether the sender of the write that this task handles records it."""
    return RECORDED.get()
