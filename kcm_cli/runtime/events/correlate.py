"""Which of many similar Events is written, and how: anew, as a higher count of an earlier one, or not at all.

Ten different messages of one reason on one object within ten minutes are told one by one; further ones are combined
into one Event. One object may have 25 Events of a source at once, and one more every five minutes.

No clock and no network: the caller passes the time (monotonic seconds).

upstream: staging/src/k8s.io/client-go/tools/record/events_cache.go
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kcm_cli.planning.actions import Notice

K = TypeVar("K")
V = TypeVar("V")

CACHE = 4096
SIMILAR = 10
SIMILAR_INTERVAL_S = 600.0
BURST = 25
RATE = 1.0 / 300.0
COMBINED = "(combined from similar events): "

Group = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """An Event as it was last written: ``name`` is empty before its first write."""

    name: str = ""
    resource_version: str = ""
    count: int = 0
    first: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Write this message under this key; ``seen`` tells of the Event that it adds to, if any."""

    key: Group
    message: str
    seen: Seen


@dataclass(frozen=True, slots=True)
class _Similar:
    messages: frozenset[str]
    since: float


@dataclass(frozen=True, slots=True)
class _Bucket:
    tokens: float
    at: float


class Correlator:
    """The memory of one source's Events."""

    def __init__(self) -> None:
        self._similar: _Lru[Group, _Similar] = _Lru(CACHE)
        self._seen: _Lru[Group, Seen] = _Lru(CACHE)
        self._buckets: _Lru[object, _Bucket] = _Lru(CACHE)

    def decide(self, notice: Notice, now: float) -> Decision | None:
        """What to write for this notice; None if its object has had enough Events."""
        ref = notice.ref
        about = (ref.kind, ref.namespace, ref.name, ref.uid, ref.api_version)
        group: Group = (about, notice.type, notice.reason)
        known = self._similar.get(group)
        if known is None or now - known.since > SIMILAR_INTERVAL_S:
            known = _Similar(frozenset(), now)
        messages = known.messages if len(known.messages) >= SIMILAR else known.messages | {notice.message}
        self._similar.put(group, replace(known, messages=messages))
        combined = len(messages) >= SIMILAR
        key = group if combined else (group, notice.message, ref.field_path)
        if not self._admit(about, now):
            return None
        message = COMBINED + notice.message if combined else notice.message
        return Decision(key, message, self._seen.get(key) or Seen())

    def written(self, key: Group, seen: Seen) -> None:
        """Remember an Event as the server has it now."""
        self._seen.put(key, seen)

    def _admit(self, about: object, now: float) -> bool:
        bucket = self._buckets.get(about) or _Bucket(float(BURST), now)
        tokens = min(float(BURST), bucket.tokens + (now - bucket.at) * RATE)
        admitted = tokens >= 1.0
        self._buckets.put(about, _Bucket(tokens - 1.0 if admitted else tokens, now))
        return admitted


class _Lru(Generic[K, V]):
    """A bounded table that forgets what was used longest ago."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._table: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        value = self._table.get(key)
        if value is not None:
            self._table.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._table[key] = value
        self._table.move_to_end(key)
        if len(self._table) > self._size:
            self._table.popitem(last=False)
