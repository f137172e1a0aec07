"""The metrics of the CronJob controller: the delay with which Jobs are created.

upstream: pkg/controller/cronjob/metrics/metrics.go
"""

from kcm_cli.component.metrics import Registry, Stability, exponential_buckets


class CronJobMetrics:
    """The metrics cronjob_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._skew = registry.histogram(
            "cronjob_controller_job_creation_skew_duration_seconds",
            "Seconds between the time at which a Job was due and its creation.",
            exponential_buckets(1, 2, 10),
            stability=Stability.STABLE,
        ).labels()

    def created(self, late_s: float) -> None:
        self._skew.observe(late_s)
