"""The metrics node_collector_*: zones, evictions, and durations of checks."""

from kcm_cli.component.metrics import Registry, Stability, exponential_buckets


class NodeMetrics:
    """The metrics of the node lifecycle controller."""

    def __init__(self, registry: Registry) -> None:
        labels = ("zone",)
        self._health = registry.gauge(
            "node_collector_zone_health", "Healthy nodes of a zone, in percent.", labels=labels
        )
        self._size = registry.gauge("node_collector_zone_size", "Nodes of a zone.", labels=labels)
        self._unhealthy = registry.gauge(
            "node_collector_unhealthy_nodes_in_zone", "Nodes of a zone that are not ready.", labels=labels
        )
        self._evictions = registry.counter(
            "node_collector_evictions_total",
            "Nodes of a zone whose pods were evicted.",
            labels=labels,
            stability=Stability.STABLE,
        )
        self._all = registry.histogram(
            "node_collector_update_all_nodes_health_duration_seconds",
            "Duration of a check of all nodes, in seconds.",
            exponential_buckets(0.01, 4, 8),
        ).labels()
        self._one = registry.histogram(
            "node_collector_update_node_health_duration_seconds",
            "Duration of a check of one node, in seconds.",
            exponential_buckets(0.001, 4, 8),
        ).labels()

    def zone(self, zone: str, size: int, unhealthy: int) -> None:
        self._size.labels(zone).set(size)
        self._unhealthy.labels(zone).set(unhealthy)
        self._health.labels(zone).set(100.0 * (size - unhealthy) / size if size else 100.0)

    def evicted(self, zone: str, count: int) -> None:
        self._evictions.labels(zone).inc(count)

    def all_nodes(self, duration_s: float) -> None:
        self._all.observe(duration_s)

    def one_node(self, duration_s: float) -> None:
        self._one.observe(duration_s)
