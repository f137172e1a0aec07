"""How late finished Jobs are deleted.

upstream: pkg/controller/ttlafterfinished/metrics/metrics.go
"""

from kcm_cli.component.metrics import Registry, exponential_buckets


class TTLMetrics:
    """ttl_after_finished_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._late = registry.histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "Seconds between the end of a Job's time to live and its deletion.",
            exponential_buckets(0.1, 2, 14),
        ).labels()

    def deleted(self, late_s: float) -> None:
        self._late.observe(late_s)
