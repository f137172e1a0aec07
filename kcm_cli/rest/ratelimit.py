"""How fast a client may ask: a token bucket with reservations.

Pure: the caller passes the time (monotonic seconds). A reservation takes its token at once, even before it exists, and
returns the seconds to wait for it, so that waiters are served in order and without polling.

upstream: staging/src/k8s.io/client-go/util/flowcontrol/throttle.go
"""

import math
from typing import Protocol


class Limiter(Protocol):
    """A rate limit with reservations."""

    def reserve(self, now: float) -> float:
        """Take one permission; the seconds to wait before using it."""

    def cancel(self, now: float) -> None:
        """Give a permission back that was not used."""


class Unlimited:
    """Never waits (QPS below zero)."""

    def reserve(self, now: float) -> float:
        return 0.0

    def cancel(self, now: float) -> None:
        return None


class TokenBucket:
    """``burst`` tokens at first, refilled at ``qps`` a second up to ``burst``."""

    __slots__ = ("_last", "_tokens", "burst", "qps")

    def __init__(self, qps: float, burst: int) -> None:
        if not (qps > 0 and math.isfinite(qps)):
            raise ValueError(f"qps must be a positive number, got {qps}")
        if burst < 1:
            raise ValueError(f"burst must be at least 1, got {burst}")
        self.qps = qps
        self.burst = burst
        self._tokens = float(burst)
        self._last: float | None = None

    def reserve(self, now: float) -> float:
        """Take one token; the seconds until it is there. A token may be owed."""
        self._refill(now)
        self._tokens -= 1.0
        return 0.0 if self._tokens >= 0.0 else -self._tokens / self.qps

    def try_take(self, now: float) -> bool:
        """Take a token only if one is there."""
        self._refill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def cancel(self, now: float) -> None:
        """Put a reserved token back. Waiters behind it keep the delay that was announced to them."""
        self._refill(now)
        self._tokens = min(self._tokens + 1.0, float(self.burst))

    def _refill(self, now: float) -> None:
        if self._last is None:
            self._last = now
        elapsed = now - self._last
        if elapsed > 0.0:
            self._tokens = min(self._tokens + elapsed * self.qps, float(self.burst))
            self._last = now


DEFAULT_QPS, DEFAULT_BURST = 5.0, 10
"""What client-go takes where nothing (zero) is configured."""


def limiter(qps: float, burst: int) -> Limiter:
    """The limiter of a client configuration: QPS below zero is no limit, zero the default."""
    if qps < 0:
        return Unlimited()
    return TokenBucket(qps or DEFAULT_QPS, burst if burst > 0 else DEFAULT_BURST)


def faster(known: Limiter, qps: float, burst: int) -> Limiter:
    """Another limiter with a multiple of the rate and burst."""
    return TokenBucket(known.qps * qps, known.burst * burst) if isinstance(known, TokenBucket) else known
