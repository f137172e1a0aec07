"""The metrics of the controller: the number of evicted pods, and the delay of their evictions.

upstream: pkg/controller/devicetainteviction/metrics/metrics.go
"""

from kcm_cli.component.metrics import Registry


class EvictionMetrics:
    """The metrics device_taint_eviction_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._deletions = registry.counter(
            "device_taint_eviction_controller_pod_deletions_total", "Number of evicted pods."
        ).labels()
        self._latency = registry.histogram(
            "device_taint_eviction_controller_pod_deletion_duration_seconds",
            "Seconds between the time at which a pod had to go and its deletion.",
            (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240),
        ).labels()

    def deleted(self, late_s: float) -> None:
        self._deletions.inc()
        self._latency.observe(late_s)
