"""What to do with a key whose sync failed: a decision, apart from the worker that acts on it."""

from dataclasses import dataclass


class Pending(Exception):
    """What a sync waits for is not there yet: the key is retried as after an error, logged at verbosity 5 only."""

    reason = "Pending"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``limit``: how often a key is retried before it is dropped until its next change; None retries for ever."""

    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Come back after the queue's backoff."""


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Come back after this many seconds; the failures so far stay counted."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Drop:
    """Give the key up until something changes."""


Decision = Retry | RequeueAfter | Drop


def classify(error: Exception, attempts: int, policy: RetryPolicy) -> Decision:
    """Decide on a failed key. ``attempts`` counts the failures before this one."""
    if policy.limit is not None and attempts >= policy.limit:
        return Drop()
    retry_after = getattr(error, "retry_after_s", None)
    if isinstance(retry_after, int | float) and retry_after > 0:
        return RequeueAfter(float(retry_after))
    return Retry()
