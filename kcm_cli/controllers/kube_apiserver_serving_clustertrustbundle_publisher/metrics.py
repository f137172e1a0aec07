"""How often and how long the CA of the API servers is published, by HTTP code."""

from kcm_cli.component.metrics import Registry, exponential_buckets


class SyncMetrics:
    """clustertrustbundle_publisher_sync_*."""

    def __init__(self, registry: Registry) -> None:
        self._total = registry.counter(
            "clustertrustbundle_publisher_sync_total", "How often the bundle was synced, by code.", labels=("code",)
        )
        self._duration = registry.histogram(
            "clustertrustbundle_publisher_sync_duration_seconds",
            "Seconds that syncing the bundle took, by code.",
            exponential_buckets(0.001, 2, 15),
            labels=("code",),
        )

    def observe(self, code: str, duration_s: float) -> None:
        self._total.labels(code).inc()
        self._duration.labels(code).observe(duration_s)
