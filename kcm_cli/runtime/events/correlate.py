"""Decides how an Event is written: as a new object, as a higher count of an earlier one, or not at all.

Events that differ only in their message are combined into one from the tenth message on, until ten minutes pass
without one. One source may write a burst of 25 Events of a type about one object, and one more every five minutes;
dropped ones are counted all the same.

Pure: the caller passes the time (monotonic seconds).

upstream: staging/src/k8s.io/client-go/tools/record/events_cache.go#EventCorrelator
"""

import msgspec

from kcm_cli.machinery.recent import Bounded
from kcm_cli.planning.actions import Notice

CACHE = 4096
SIMILAR = 10
SIMILAR_INTERVAL_S = 600.0
BURST = 25
RATE = 7158279 / 2**31
"""1/300 as a 32-bit float: upstream's budget is full again after 300 s, not a moment later."""
COMBINED = "(combined from similar events): "
_NANOSECOND = 1e-9

Group = tuple[object, ...]


class Source(msgspec.Struct, frozen=True):
    """The component that emits. ``host``: its node, where it runs on one."""

    component: str
    host: str = ""


class Emitted(msgspec.Struct, frozen=True, gc=False):
    """An Event as it was emitted, with the name and time (RFC 3339) for the case that it is created."""

    source: Source
    notice: Notice
    name: str
    time: str


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The Event to write: created if ``count`` is 1, else patched. ``first``: the time of the first occurrence."""

    name: str
    message: str
    count: int
    first: str
    combined: bool


class _Similar(msgspec.Struct, frozen=True, gc=False):
    messages: frozenset[str]
    last: float


class _Seen(msgspec.Struct, frozen=True, gc=False):
    name: str
    count: int
    first: str


class _Bucket(msgspec.Struct, frozen=True, gc=False):
    tokens: float
    at: float


class Correlator:
    """Recent Events, in bounded memories: upstream's EventCorrelator."""

    def __init__(self) -> None:
        self._similar: Bounded[Group, _Similar] = Bounded(CACHE)
        self._seen: Bounded[Group, _Seen] = Bounded(CACHE)
        self._buckets: Bounded[Group, _Bucket] = Bounded(CACHE)

    def decide(self, event: Emitted, now: float) -> Decision | None:
        """What to write for this Event; None if the rate limit drops it."""
        notice, ref = event.notice, event.notice.ref
        about = (
            event.source.component,
            event.source.host,
            ref.kind,
            ref.namespace,
            ref.name,
            ref.uid,
            ref.api_version,
            notice.type,
        )
        group: Group = (about, notice.reason)
        combined = self._combine(group, notice.message, now)
        key = group if combined else (group, notice.message, ref.field_path)
        known = self._seen.get(key) or _Seen(event.name, 0, event.time)
        seen = _Seen(known.name, known.count + 1, known.first)
        self._seen[key] = seen
        if not self._admit(about, now):
            return None
        message = COMBINED + notice.message if combined else notice.message
        return Decision(seen.name, message, seen.count, seen.first, combined)

    def _combine(self, group: Group, message: str, now: float) -> bool:
        """Whether the group has too many messages. The tenth and later ones are not remembered."""
        known = self._similar.get(group)
        recent = known is not None and now - known.last <= SIMILAR_INTERVAL_S
        before = known.messages if known is not None and recent else frozenset()
        messages = before | {message}
        combined = len(messages) >= SIMILAR
        self._similar[group] = _Similar(before if combined else messages, now)
        return combined

    def _admit(self, about: Group, now: float) -> bool:
        bucket = self._buckets.get(about) or _Bucket(float(BURST), now)
        tokens = min(float(BURST), bucket.tokens + (now - bucket.at) * RATE) - 1.0
        admitted = tokens > -_NANOSECOND * RATE
        self._buckets[about] = _Bucket(tokens, now) if admitted else bucket
        return admitted
