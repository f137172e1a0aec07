"""The metrics horizontal_pod_autoscaler_controller_*."""

from kcm_cli.component.metrics import Registry, Stability, exponential_buckets

_PREFIX = "horizontal_pod_autoscaler_controller_"
_BUCKETS = exponential_buckets(0.001, 2, 15)
NONE, INTERNAL, SPEC = "none", "internal", "spec"


def action(before: int, after: int) -> str:
    """The label for a change of size."""
    return "scale_up" if after > before else "scale_down" if after < before else NONE


class AutoscalerMetrics:
    """The metrics of syncs, of computed metrics and of decisions."""

    def __init__(self, registry: Registry) -> None:
        labels, more, beta = ("action", "error"), ("action", "error", "metric_type"), Stability.BETA
        self._reconciled = registry.counter(
            f"{_PREFIX}reconciliations_total", "Number of syncs of autoscalers.", labels=labels, stability=beta
        )
        self._reconciliation = registry.histogram(
            f"{_PREFIX}reconciliation_duration_seconds",
            "Duration of syncs of autoscalers, in seconds.",
            _BUCKETS,
            labels=labels,
            stability=beta,
        )
        self._computed = registry.counter(
            f"{_PREFIX}metric_computation_total", "Number of metric computations.", labels=more, stability=beta
        )
        self._computation = registry.histogram(
            f"{_PREFIX}metric_computation_duration_seconds",
            "Duration of metric computations, in seconds.",
            _BUCKETS,
            labels=more,
            stability=beta,
        )
        self.count = registry.gauge(f"{_PREFIX}num_horizontal_pod_autoscalers", "Number of autoscalers.").labels()
        self._desired = registry.gauge(
            f"{_PREFIX}desired_replicas", "Replicas that an autoscaler wants.", labels=("namespace", "hpa_name")
        )

    def reconciled(self, action: str, error: str, seconds: float) -> None:
        self._reconciled.labels(action, error).inc()
        self._reconciliation.labels(action, error).observe(seconds)

    def computed(self, action: str, error: str, type_: str, seconds: float) -> None:
        self._computed.labels(action, error, type_).inc()
        self._computation.labels(action, error, type_).observe(seconds)

    def desired(self, namespace: str, name: str, replicas: int) -> None:
        self._desired.labels(namespace, name).set(replicas)

    def forget(self, namespace: str, name: str) -> None:
        """Remove the series of a deleted autoscaler."""
        self._desired.remove(namespace, name)
