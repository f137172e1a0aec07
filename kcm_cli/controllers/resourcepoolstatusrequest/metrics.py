"""How many requests for the state of pools were answered, by driver.

upstream: pkg/controller/resourcepoolstatusrequest/metrics/metrics.go
"""

from kcm_cli.component.metrics import Registry, exponential_buckets

_NAME = "resourcepoolstatusrequest_controller_request"
_LABELS = ("driver_name",)


class RequestMetrics:
    """resourcepoolstatusrequest_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._processed = registry.counter(
            f"{_NAME}s_processed_total", "How many requests were worked out, by driver.", labels=_LABELS
        )
        self._errors = registry.counter(
            f"{_NAME}_processing_errors_total", "How many answers could not be written, by driver.", labels=_LABELS
        )
        self._duration = registry.histogram(
            f"{_NAME}_processing_duration_seconds",
            "Seconds that a request took, by driver.",
            exponential_buckets(0.001, 2, 15),
            labels=_LABELS,
        )

    def processed(self, driver: str, took_s: float, *, failed: bool) -> None:
        self._processed.labels(driver).inc()
        if failed:
            self._errors.labels(driver).inc()
        self._duration.labels(driver).observe(took_s)
