"""How often and how long the root CA is published, by HTTP code."""

from kcm_cli.component.metrics import Registry, exponential_buckets


class SyncMetrics:
    """root_ca_cert_publisher_sync_*."""

    def __init__(self, registry: Registry) -> None:
        self._total = registry.counter(
            "root_ca_cert_publisher_sync_total", "How often a namespace was synced, by code.", labels=("code",)
        )
        self._duration = registry.histogram(
            "root_ca_cert_publisher_sync_duration_seconds",
            "Seconds that syncing a namespace took, by code.",
            exponential_buckets(0.001, 2, 15),
            labels=("code",),
        )

    def observe(self, code: str, duration_s: float) -> None:
        self._total.labels(code).inc()
        self._duration.labels(code).observe(duration_s)
