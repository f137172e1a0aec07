"""The work queue: a key is never lost, never handled twice at once, and retried with backoff.

Invariants (client-go util/workqueue): a key is in ``_dirty`` from the moment it is added until a worker gets it;
it is in ``_processing`` from then until ``done``; it waits in ``_queue`` only if it is dirty and not processing.
Adding a key that is being processed marks it dirty, and ``done`` queues it again.

The retry delay of a key is the larger of its own backoff (5 ms doubling to 1000 s) and the queue's overall rate
(10 a second, bucket of 100).
"""

import asyncio
from collections import deque
from typing import Protocol

from kcm_cli.component.clock import Clock
from kcm_cli.runtime import causes
from kcm_cli.runtime.causes import DELAY, RETRY, Causes


class QueueMetrics(Protocol):
    """The metrics of a queue. ``depth``: the waiting keys, including those that were added again while being processed.
    Times are monotonic seconds. ``taken`` returns for how long the key waited."""

    def added(self, key: str, depth: int, now: float) -> None: ...
    def taken(self, key: str, depth: int, now: float) -> float: ...
    def finished(self, key: str, now: float) -> None: ...
    def retried(self) -> None: ...


class NoMetrics:
    """No metrics."""

    def added(self, key: str, depth: int, now: float) -> None: ...
    def taken(self, key: str, depth: int, now: float) -> float:
        return 0.0

    def finished(self, key: str, now: float) -> None: ...
    def retried(self) -> None: ...


class ShutDown(Exception):
    """The queue has been shut down."""


class RetryLimiter:
    """The delays of failed keys: exponential backoff per key, and a token bucket for all keys."""

    def __init__(
        self,
        *,
        base_s: float = 0.005,
        maximum_s: float = 1000.0,
        rate: float = 10.0,
        burst: int = 100,
    ) -> None:
        self._base_s = base_s
        self._maximum_s = maximum_s
        self._rate = rate
        self._burst = burst
        self._failures: dict[str, int] = {}
        self._tokens = float(burst)
        self._last = 0.0

    def when(self, key: str, now: float) -> float:
        """Seconds to wait, counting one more failure of this key."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        own = min(self._maximum_s, self._base_s * 2.0 ** min(failures, 60))
        return max(own, self._reserve(now))

    def forget(self, key: str) -> None:
        self._failures.pop(key, None)

    def failures(self, key: str) -> int:
        return self._failures.get(key, 0)

    def _reserve(self, now: float) -> float:
        self._tokens = min(float(self._burst), self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1.0
        return 0.0 if self._tokens >= 0 else -self._tokens / self._rate


def _of(why: dict[str, Causes], key: str) -> Causes:
    held = why.get(key)
    if held is None:
        held = why[key] = Causes()
    return held


class WorkQueue:
    """Keys to work on. Used from one event loop; all methods but ``get`` return at once."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        limiter: RetryLimiter | None = None,
        metrics: QueueMetrics | None = None,
        caused: bool = False,
    ) -> None:
        """caused: whether the causes of keys are kept (see ``causes``)."""
        self.name = name
        self._clock = clock
        self._limiter = limiter or RetryLimiter()
        self._metrics: QueueMetrics = metrics or NoMetrics()
        self._queue: deque[str] = deque()
        self._dirty: set[str] = set()
        self._processing: set[str] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._delayed: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        self._closed = False
        self._why: dict[str, Causes] | None = {} if caused else None
        self._why_later: dict[str, Causes] = {}
        self._taken_for = Causes()
        self._waited_s = 0.0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """Nothing queued and nothing being processed (delayed keys do not count)."""
        return not self._queue and not self._processing

    @property
    def awaited(self) -> bool:
        """A worker waits in ``get`` for the next key."""
        return bool(self._waiters)

    def add(self, key: str) -> None:
        """Queue a key, unless it is queued already."""
        if self._closed:
            return
        why = self._why
        if why is not None:
            held = why.get(key)
            if held is not None and held.is_full:
                held.more += causes.is_caused()
            elif (cause := causes.current()) is not None:
                if held is None:
                    why[key] = Causes([cause])
                else:
                    held.found.append(cause)
        self._add(key)

    def _add(self, key: str) -> None:
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        self._metrics.added(key, len(self._dirty), self._clock.monotonic())
        if key not in self._processing:
            self._requeue(key)

    def add_after(self, key: str, delay_s: float, *, retry: bool = True, what: str = DELAY) -> None:
        """Add after a delay. Of several delays of one key the earliest counts.

        retry: whether the metrics count it as a retry, as upstream counts every AddAfter. what: how this is called in
        the key's causes.
        """
        if self._closed:
            return
        if retry:
            self._metrics.retried()
        if delay_s <= 0:
            self.add(key)
            return
        if self._why is not None:
            if (told := causes.told()) is not None:
                _of(self._why_later, key).add(told)
            _of(self._why_later, key).add(causes.later(what))
        due = self._clock.monotonic() + delay_s
        waiting = self._delayed.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._delayed[key] = (due, self._clock.call_later(delay_s, lambda: self._fire(key)))

    def add_rate_limited(self, key: str) -> float:
        """Add after the key's backoff, and count one more failure. Returns the backoff in seconds."""
        delay_s = self._limiter.when(key, self._clock.monotonic())
        self.add_after(key, delay_s, what=RETRY)
        return delay_s

    def forget(self, key: str) -> None:
        """Reset the key's backoff, once it has succeeded or been given up."""
        self._limiter.forget(key)

    def num_requeues(self, key: str) -> int:
        """The number of the key's failures since ``forget``."""
        return self._limiter.failures(key)

    async def get(self) -> str:
        """Wait for the next key. Raises ShutDown. Call ``done`` with every key."""
        while not self._queue:
            if self._closed:
                raise ShutDown
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._give_up(waiter)
                raise
        key = self._queue.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        if self._why is not None:
            self._taken_for = self._why.pop(key) if key in self._why else Causes()
            self._taken_for.shorten()
        self._waited_s = self._metrics.taken(key, len(self._dirty), self._clock.monotonic())
        return key

    def done(self, key: str) -> None:
        """The key has been processed. If it was added meanwhile, it is queued again."""
        self._processing.discard(key)
        self._metrics.finished(key, self._clock.monotonic())
        if key in self._dirty:
            self._requeue(key)

    @property
    def taken_for(self) -> Causes:
        """The causes of the key that ``get`` returned last; to be read before the next await."""
        return self._taken_for

    @property
    def waited_s(self) -> float:
        """For how many seconds it waited, without delays; as ``taken_for``."""
        return self._waited_s

    def keep(self, key: str, why: Causes) -> None:
        """Keep the causes of a key that was taken, but waits for something and will be added again."""
        if self._why is not None:
            _of(self._why, key).merge(why)

    def shut_down(self) -> None:
        """Accept no more keys. ``get`` raises ShutDown once the queue is empty."""
        self._closed = True
        for _, handle in self._delayed.values():
            handle.cancel()
        self._delayed.clear()
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _fire(self, key: str) -> None:
        self._delayed.pop(key, None)
        if self._why is not None and (why := self._why_later.pop(key, None)) is not None:
            _of(self._why, key).merge(why)
        self._add(key)

    def _requeue(self, key: str) -> None:
        self._queue.append(key)
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _give_up(self, waiter: asyncio.Future[None]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif self._queue:
            self._wake()  # a cancelled waiter does not take its key: wake another one
