"""The count and duration of syncs by HTTP code, for the controllers that publish certificates.

upstream: pkg/controller/certificates/rootcacertpublisher/metrics.go
"""

from kcm_cli.component.metrics import Registry, exponential_buckets


class CodedSyncMetrics:
    """The metrics PREFIX_sync_total and PREFIX_sync_duration_seconds. ``what``: the synced objects, for the help
    text."""

    def __init__(self, registry: Registry, prefix: str, what: str) -> None:
        self._total = registry.counter(
            f"{prefix}_sync_total", f"How often {what} was synced, by code.", labels=("code",)
        )
        self._duration = registry.histogram(
            f"{prefix}_sync_duration_seconds",
            f"Seconds that syncing {what} took, by code.",
            exponential_buckets(0.001, 2, 15),
            labels=("code",),
        )

    def observe(self, code: str, duration_s: float) -> None:
        """Count a sync that ended with this code. ``duration_s``: its duration in seconds."""
        self._total.labels(code).inc()
        self._duration.labels(code).observe(duration_s)
