"""How old the ready pods are that scaling down chooses, whichever kind of replica owner they have.

upstream: pkg/controller/replicaset/metrics/metrics.go
"""

from collections.abc import Iterable

from kcm_cli.component.metrics import Registry, exponential_buckets


class DeletionAges:
    """replicaset_controller_sorting_deletion_age_ratio, of ReplicaSets and ReplicationControllers."""

    def __init__(self, registry: Registry) -> None:
        self._ages = registry.histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Age of the ready pods chosen for deletion, relative to the youngest ready pod.",
            exponential_buckets(0.25, 2, 6),
        ).labels()

    def chosen(self, ratios: Iterable[int]) -> None:
        """Ready pods were chosen for deletion."""
        for ratio in ratios:
            self._ages.observe(ratio)
