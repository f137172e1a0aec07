"""The queue of a zone's nodes that wait for an eviction taint, at the zone's rate.

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go
"""

from kcm_cli.rest.ratelimit import TokenBucket


class ZoneQueue:
    """Nodes to taint, in order. A tainted node is remembered until it is removed.

    upstream: RateLimitedTimedQueue.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._bucket = TokenBucket(rate, 1) if rate > 0 else None
        self._waiting: dict[str, float] = {}
        self._known: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def set_rate(self, rate: float, now: float) -> None:
        """Set the rate in nodes per second; 0 stops the queue. The present wait does not end early."""
        if rate == self._rate:
            return
        waits = self._bucket is None or not self._bucket.try_take(now)
        self._rate = rate
        self._bucket = TokenBucket(rate, 1) if rate > 0 else None
        if waits and self._bucket is not None:
            self._bucket.try_take(now)

    def add(self, name: str) -> bool:
        """Queue a node. False if it is queued or was tainted already."""
        if name in self._known:
            return False
        self._known.add(name)
        self._waiting[name] = 0.0
        return True

    def remove(self, name: str) -> bool:
        """Remove a node. Returns whether it was known."""
        self._waiting.pop(name, None)
        known = name in self._known
        self._known.discard(name)
        return known

    def next(self, now: float) -> str | None:
        """The next node that may be tainted now (monotonic seconds), or None."""
        due = next((name for name, at in self._waiting.items() if at <= now), None)
        if due is None or self._bucket is None or not self._bucket.try_take(now):
            return None
        return due

    def done(self, name: str) -> None:
        self._waiting.pop(name, None)

    def later(self, name: str, at: float) -> None:
        """Retry a node at this time."""
        if name in self._waiting:
            self._waiting[name] = at
