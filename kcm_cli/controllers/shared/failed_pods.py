"""The backoff before a failed pod is deleted, so that a node which rejects the next one is not flooded with them.

This is state that the API server does not have. Pure: the time is an argument.

upstream: staging/src/k8s.io/client-go/util/flowcontrol/backoff.go
"""

import msgspec

INITIAL_S = 1.0
MAXIMUM_S = 15 * 60.0


class _Entry(msgspec.Struct):
    delay_s: float
    since: float


class FailedPods:
    """The delays by key (such as DaemonSet and node), doubled with each deletion. upstream: failedPodsBackoff.

    Times are monotonic seconds.
    """

    def __init__(self, maximum_s: float = MAXIMUM_S) -> None:
        self._maximum_s = maximum_s
        self._entries: dict[str, _Entry] = {}

    def __bool__(self) -> bool:
        """Whether any pod may have to wait."""
        return bool(self._entries)

    def waits(self, key: str, now: float) -> float | None:
        """The delay in seconds that is in force; None if the pod may be deleted."""
        entry = self._entries.get(key)
        if entry is None or now - entry.since >= entry.delay_s:
            return None
        return entry.delay_s

    def next(self, key: str, now: float) -> None:
        """A pod is deleted: double the delay for the next one."""
        entry = self._entries.get(key)
        delay = INITIAL_S if entry is None or self._expired(entry, now) else min(2 * entry.delay_s, self._maximum_s)
        self._entries[key] = _Entry(delay, now)

    def collect(self, now: float) -> None:
        """Remove expired entries."""
        self._entries = {key: entry for key, entry in self._entries.items() if not self._expired(entry, now)}

    def _expired(self, entry: _Entry, now: float) -> bool:
        return now - entry.since > 2 * self._maximum_s
