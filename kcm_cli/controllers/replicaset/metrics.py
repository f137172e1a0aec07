"""What the replicaset controller counts."""

from collections.abc import Iterable

from kcm_cli.component.metrics import Registry, exponential_buckets
from kcm_cli.engine.freshness import stale_sync_skips


class ReplicaSetMetrics:
    """replicaset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self.skipped = stale_sync_skips(registry, "replicaset", "ReplicaSet")
        self._ages = registry.histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "How many times as old as the youngest ready pod a ready pod was that scaling down chose.",
            exponential_buckets(0.25, 2, 6),
        ).labels()

    def chosen(self, ratios: Iterable[int]) -> None:
        """Ready pods were chosen for deletion."""
        for ratio in ratios:
            self._ages.observe(ratio)
