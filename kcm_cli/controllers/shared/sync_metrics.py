"""The count and duration of syncs by HTTP code, for the controllers that publish certificates.

upstream: pkg/controller/certificates/rootcacertpublisher/metrics.go
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry, exponential_buckets
from kcm_cli.rest.errors import ApiError


class CodedSyncMetrics:
    """The metrics PREFIX_sync_total and PREFIX_sync_duration_seconds. ``what``: the synced objects, for the help
    text."""

    def __init__(self, registry: Registry, clock: Clock, prefix: str, what: str) -> None:
        self._clock = clock
        self._total = registry.counter(f"{prefix}_sync_total", f"Number of syncs of {what}, by code.", labels=("code",))
        self._duration = registry.histogram(
            f"{prefix}_sync_duration_seconds",
            f"Seconds that syncing {what} took, by code.",
            exponential_buckets(0.001, 2, 15),
            labels=("code",),
        )

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Count a sync: as 200, with the status code of an API error, or as 500 for another error."""
        started, code = self._clock.monotonic(), "500"
        try:
            yield
            code = "200"
        except ApiError as error:
            code = str(error.status)
            raise
        finally:
            self._total.labels(code).inc()
            self._duration.labels(code).observe(self._clock.monotonic() - started)
