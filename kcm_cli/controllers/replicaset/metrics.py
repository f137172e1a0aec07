"""What the replicaset controller counts."""

from collections.abc import Iterable

from kcm_cli.component.metrics import Registry, exponential_buckets


class ReplicaSetMetrics:
    """replicaset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._skips = registry.counter(
            "replicaset_controller_stale_sync_skips_total",
            "How often a ReplicaSet was not synced since a cache had not caught up.",
            labels=("group", "resource"),
        )
        self._ages = registry.histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "How many times as old as the youngest ready pod a ready pod was that scaling down chose.",
            exponential_buckets(0.25, 2, 6),
        ).labels()

    def skipped(self, group: str, resource: str) -> None:
        """A sync was put off."""
        self._skips.labels(group, resource).inc()

    def chosen(self, ratios: Iterable[int]) -> None:
        """Ready pods were chosen for deletion."""
        for ratio in ratios:
            self._ages.observe(ratio)
