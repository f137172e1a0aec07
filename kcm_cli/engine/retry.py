"""What to do with a key whose sync failed: a decision, apart from the worker that acts on it."""

import msgspec

from kcm_cli.machinery.errors import SyncError


class Pending(SyncError):
    """What a sync waits for is not there yet: the key is retried as after an error, logged at verbosity 5 only."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """``limit``: how often a key is retried before it is dropped until its next change; None retries for ever."""

    limit: int | None = None


class Retry(msgspec.Struct, frozen=True):
    """Come back after the queue's backoff."""


class Drop(msgspec.Struct, frozen=True):
    """Give the key up until something changes."""


Decision = Retry | Drop


def classify(attempts: int, policy: RetryPolicy) -> Decision:
    """Decide on a failed key, whatever the error: the client has waited already where the server said when.

    ``attempts`` counts the failures before this one.
    """
    return Drop() if policy.limit is not None and attempts >= policy.limit else Retry()
