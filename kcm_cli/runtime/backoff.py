"""Delays between attempts: exponential, jittered, reset after a quiet while."""

import random

import msgspec


class BackoffPolicy(msgspec.Struct, frozen=True):
    """Seconds. The reflector's defaults are client-go's: 0.8 s doubling to 30 s, reset after 2 quiet minutes."""

    initial_s: float = 0.8
    factor: float = 2.0
    maximum_s: float = 30.0
    jitter: float = 1.0
    reset_after_s: float = 120.0


class Backoff:
    """The state of one loop's backoff. Times are monotonic seconds that the caller passes in."""

    def __init__(self, policy: BackoffPolicy, rng: random.Random) -> None:
        self._policy = policy
        self._rng = rng
        self._current_s = policy.initial_s
        self._last = float("-inf")

    def next_s(self, now: float) -> float:
        """The delay before the next attempt; grows with each call."""
        policy = self._policy
        if now - self._last > policy.reset_after_s:
            self._current_s = policy.initial_s
        self._last = now
        delay = self._current_s
        self._current_s = min(policy.maximum_s, self._current_s * policy.factor)
        return delay * (1.0 + policy.jitter * self._rng.random())

    def reset(self) -> None:
        self._current_s = self._policy.initial_s
