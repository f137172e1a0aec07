"""Per zone: its state, and the queue of nodes that wait to be tainted for eviction, at the zone's rate.

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go, node_lifecycle_controller.go#handleDisruption
"""

from dataclasses import dataclass

from kcm_cli.controllers.node_lifecycle.plan import ZoneState
from kcm_cli.rest.ratelimit import TokenBucket


@dataclass(frozen=True, slots=True)
class Rates:
    """Nodes per second. ``secondary`` applies to large zones in partial disruption, small ones stop."""

    normal: float
    secondary: float
    large: int

    def of(self, state: ZoneState, nodes: int) -> float:
        """The rate of a zone of so many nodes; 0 stops it."""
        if state is ZoneState.PARTIAL:
            return self.secondary if nodes > self.large else 0.0
        return self.normal


class ZoneQueue:
    """Nodes to taint, in order. One that has been tainted is remembered until it is removed."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._bucket = TokenBucket(rate, 1) if rate > 0 else None
        self._waiting: dict[str, float] = {}
        self._known: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def set_rate(self, rate: float, now: float) -> None:
        """Nodes per second from now on; 0 stops the queue. Who had to wait still has to."""
        if rate == self._rate:
            return
        waits = self._bucket is None or not self._bucket.try_take(now)
        self._rate = rate
        self._bucket = TokenBucket(rate, 1) if rate > 0 else None
        if waits and self._bucket is not None:
            self._bucket.try_take(now)

    def add(self, name: str) -> bool:
        """Queue a node; false if it is queued or done already."""
        if name in self._known:
            return False
        self._known.add(name)
        self._waiting[name] = 0.0
        return True

    def remove(self, name: str) -> bool:
        """Forget a node; whether it was known."""
        self._waiting.pop(name, None)
        known = name in self._known
        self._known.discard(name)
        return known

    def next(self, now: float) -> str | None:
        """The next node that may be tainted now (monotonic seconds), if any."""
        due = next((name for name, at in self._waiting.items() if at <= now), None)
        if due is None or self._bucket is None or not self._bucket.try_take(now):
            return None
        return due

    def done(self, name: str) -> None:
        self._waiting.pop(name, None)

    def later(self, name: str, at: float) -> None:
        """Try a node again at this time."""
        if name in self._waiting:
            self._waiting[name] = at


@dataclass(frozen=True, slots=True)
class Change:
    """What follows from the zones' new states: rates to set, and whether all nodes are let off or start anew."""

    states: dict[str, ZoneState]
    rates: dict[str, float]
    let_off: bool = False
    restart: bool = False


def disruption(before: dict[str, ZoneState], now: dict[str, ZoneState], sizes: dict[str, int], rates: Rates) -> Change:
    """Compare the zones' states with those of the last look.

    While every zone is fully disrupted nothing is evicted: it is more likely that we are cut off than they.
    """
    previous = {zone: before.get(zone, ZoneState.INITIAL) for zone in now}
    all_down = all(state is ZoneState.FULL for state in now.values())
    were_down = all(state is ZoneState.FULL for state in previous.values())
    if all_down and were_down:
        return Change(previous, {})
    if all_down:
        return Change(dict.fromkeys(now, ZoneState.FULL), dict.fromkeys(now, 0.0), let_off=True)
    changed = {zone for zone, state in now.items() if were_down or previous[zone] is not state}
    return Change(dict(now), {zone: rates.of(now[zone], sizes[zone]) for zone in changed}, restart=were_down)
