"""The metrics endpoint_slice_mirroring_controller_*: numbers of endpoints and slices, and their changes.

upstream: pkg/controller/endpointslicemirroring/metrics
"""

from kcm_cli.component.metrics import Registry, exponential_buckets
from kcm_cli.controllers.endpointslice_mirroring.plan import Mirroring
from kcm_cli.controllers.shared.slices import SliceTotals

_PREFIX = "endpoint_slice_mirroring_controller_"
_PER_SYNC = exponential_buckets(2, 2, 15)


class MirroringMetrics:
    """The totals of all Endpoints, updated by each sync and not shown before the first one."""

    def __init__(self, registry: Registry, limit: int) -> None:
        self._added, self._updated, self._removed, self._skipped = (
            registry.histogram(f"{_PREFIX}{name}_per_sync", text, _PER_SYNC)
            for name, text in (
                ("endpoints_added", "Endpoints that a sync adds."),
                ("endpoints_updated", "Endpoints that a sync updates."),
                ("endpoints_removed", "Endpoints that a sync removes."),
                ("addresses_skipped", "Addresses that a sync leaves out: invalid ones, and those over the limit."),
            )
        )
        self._duration = registry.histogram(
            f"{_PREFIX}endpoints_sync_duration", "Seconds that a sync takes.", exponential_buckets(0.001, 2, 15)
        )
        self._totals = SliceTotals(registry, _PREFIX, limit)
        self._changes = registry.counter(
            f"{_PREFIX}changes", "EndpointSlices created, updated and deleted.", labels=("operation",)
        )

    def took(self, duration_s: float) -> None:
        """Record the duration of a sync."""
        self._duration.labels().observe(duration_s)

    def changed(self, operation: str) -> None:
        """Count a written slice: create, update or delete."""
        self._changes.labels(operation).inc()

    def planned(self, key: str, planned: Mirroring) -> None:
        """Record the plan of a sync."""
        self._added.labels().observe(float(planned.added))
        self._updated.labels().observe(float(planned.updated))
        self._removed.labels().observe(float(planned.removed))
        self._skipped.labels().observe(float(planned.skipped))
        self._totals.put(key, planned.efficiency)

    def forget(self, key: str) -> None:
        """Remove Endpoints that are not mirrored any more."""
        self._totals.forget(key)
