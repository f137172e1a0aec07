"""Per zone, the queue of nodes that wait to be tainted for eviction, at the zone's rate.

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go
"""

from kcm_cli.rest.ratelimit import TokenBucket


class ZoneQueue:
    """Nodes to taint, in order. One that has been tainted is remembered until it is removed.

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
