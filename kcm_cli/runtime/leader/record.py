"""The election record in a Lease, and the decision what to do about it.

Pure. The times in the record are for people. What counts is the local time at which a change was seen, so that clocks
of different machines need not agree; they must run at about the same speed.

upstream: staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go, resourcelock/leaselock.go
"""

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import View

_MOST_S = 2**31 - 1
"""The field is an int32."""


class LeaseSpec(View, frozen=True, gc=False):
    """coordination.k8s.io/v1 LeaseSpec."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Record(msgspec.Struct, frozen=True):
    """LeaderElectionRecord: the holder, the duration and the times (RFC 3339 with microseconds).

    ``strategy``, ``preferred_holder``: set by the API server under coordinated leader election, read here only.
    """

    holder: str
    duration_s: int
    acquire_time: str
    renew_time: str
    transitions: int = 0
    strategy: str = ""
    preferred_holder: str = ""


class Observation(msgspec.Struct, frozen=True):
    """A record, and the time (monotonic seconds) when it was first seen with these values."""

    record: Record
    at: float

    def valid(self, now: float) -> bool:
        """Whether the holder may still rely on the lease."""
        return self.left_s(now) > 0

    def left_s(self, now: float) -> float:
        """Seconds for which the holder may still rely on the lease; negative after that."""
        return self.at + self.record.duration_s - now


class Held(msgspec.Struct, frozen=True):
    """Another candidate leads: wait."""

    holder: str


class Claim(msgspec.Struct, frozen=True):
    """Write this record. ``renews``: it renews a lease that this process holds."""

    record: Record
    renews: bool


def observe(known: Observation | None, record: Record, now: float) -> Observation:
    """The observation after reading a record: an unchanged record keeps the time at which it was first seen."""
    if known is not None and known.record == record:
        return known
    return Observation(record, now)


def decide(known: Observation, mine: Record, now: float) -> Held | Claim:
    """What to do about the record that was read last. ``mine``: the record that this process would write."""
    current = known.record
    if current.holder == mine.holder:
        acquired = current.acquire_time or mine.acquire_time  # absent where the API server made the lease
        return Claim(replace(mine, acquire_time=acquired, transitions=current.transitions), renews=True)
    if current.holder and known.valid(now):
        return Held(current.holder)
    return Claim(replace(mine, transitions=current.transitions + 1), renews=False)


def decide_coordinated(known: Observation, mine: Record, now: float) -> Held | Claim:
    """The same under coordinated leader election: the API server names the holder.

    The holder renews until the lease has expired or another holder is preferred.
    """
    current = known.record
    if current.holder == mine.holder and known.valid(now) and not current.preferred_holder:
        return decide(known, mine, now)
    return Held(current.holder)


def released(current: Record, now_text: str) -> Record:
    """The record that gives the lease up: no holder, and the shortest duration."""
    return Record("", 1, now_text, now_text, current.transitions)


def from_spec(spec: LeaseSpec) -> Record:
    """The record in a Lease."""
    return Record(
        spec.holder_identity or "",
        min(spec.lease_duration_seconds or 0, _MOST_S),
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
        spec.strategy or "",
        spec.preferred_holder or "",
    )


def to_spec(record: Record) -> Doc:
    """The fields of a LeaseSpec that a holder writes."""
    return {
        "acquireTime": record.acquire_time,
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_s,
        "leaseTransitions": record.transitions,
        "renewTime": record.renew_time,
    }
