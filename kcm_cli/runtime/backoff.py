"""Delays between attempts: exponential, jittered, reset after a quiet while.

upstream: staging/src/k8s.io/client-go/tools/cache/reflector.go#NewReflectorWithOptions
"""

import random

INITIAL_S = 0.8
FACTOR = 2.0
MAXIMUM_S = 30.0
RESET_AFTER_S = 120.0
"""A while without attempts after which the delays begin anew."""


class Backoff:
    """The state of one loop's backoff. Times are monotonic seconds that the caller passes in."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._current_s = INITIAL_S
        self._last = float("-inf")

    def next_s(self, now: float) -> float:
        """The delay before the next attempt, up to twice as long at random; grows with each call."""
        if now - self._last > RESET_AFTER_S:
            self._current_s = INITIAL_S
        self._last = now
        delay = self._current_s
        self._current_s = min(MAXIMUM_S, self._current_s * FACTOR)
        return delay * (1.0 + self._rng.random())

    def reset(self) -> None:
        self._current_s = INITIAL_S
