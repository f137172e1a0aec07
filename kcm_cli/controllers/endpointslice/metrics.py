"""The metrics endpoint_slice_controller_*: numbers of endpoints and slices, and their changes.

upstream: staging/src/k8s.io/endpointslice/metrics
"""

from kcm_cli.api.discovery import IPV4, IPV6
from kcm_cli.component.metrics import DEFAULT_BUCKETS, Registry, Stability, exponential_buckets
from kcm_cli.controllers.endpointslice.plan import Slicing
from kcm_cli.controllers.shared.slices import SliceTotals

_PREFIX = "endpoint_slice_controller_"
_PER_SYNC = exponential_buckets(2, 2, 15)


class SliceMetrics:
    """The totals of all Services, updated by each sync and not shown before the first one."""

    def __init__(self, registry: Registry, limit: int) -> None:
        beta = Stability.BETA
        self._added = registry.histogram(
            f"{_PREFIX}endpoints_added_per_sync", "Endpoints that a sync of a Service adds.", _PER_SYNC, stability=beta
        )
        self._removed = registry.histogram(
            f"{_PREFIX}endpoints_removed_per_sync",
            "Endpoints that a sync of a Service removes.",
            _PER_SYNC,
            stability=beta,
        )
        self._totals = SliceTotals(registry, _PREFIX, limit, beta)
        self._changes = registry.counter(
            f"{_PREFIX}changes", "EndpointSlices created, updated and deleted.", labels=("operation",)
        )
        self._changed = registry.histogram(
            f"{_PREFIX}endpointslices_changed_per_sync",
            "EndpointSlices that a sync of a Service changes.",
            DEFAULT_BUCKETS,
            labels=("topology", "traffic_distribution"),
        )
        self._syncs = registry.counter(f"{_PREFIX}syncs", "Syncs of Services, by result.", labels=("result",))
        self._distributions = registry.gauge(
            f"{_PREFIX}services_count_by_traffic_distribution",
            "Services by their traffic distribution.",
            labels=("traffic_distribution",),
            stability=beta,
        )
        self._distribution_of: dict[str, str] = {}

    def synced(self, result: str) -> None:
        """Count a sync by its result: success, stale or error."""
        self._syncs.labels(result).inc()

    def changed(self, operation: str) -> None:
        """Count a written slice: create, update or delete."""
        self._changes.labels(operation).inc()

    def planned(self, key: str, address_type: str, planned: Slicing) -> None:
        """Record the plan for one address type of a Service."""
        self._added.labels().observe(float(planned.added))
        self._removed.labels().observe(float(planned.removed))
        self._totals.put(f"{key} {address_type}", planned.efficiency.values(), least=1)
        self._distribute(key, planned.distribution)

    def written(self, planned: Slicing) -> None:
        """Record a plan whose writes have all succeeded."""
        self._changed.labels(planned.topology, planned.distribution).observe(float(planned.changed))

    def forget(self, key: str) -> None:
        """Remove a deleted Service."""
        for address_type in (IPV4, IPV6):
            self.forget_type(key, address_type)
        self._distribute(key, "")

    def forget_type(self, key: str, address_type: str) -> None:
        """Remove an address type that a Service does not have."""
        self._totals.forget(f"{key} {address_type}")

    def _distribute(self, key: str, distribution: str) -> None:
        """Count a Service by its traffic distribution. A value that no Service has any more stays as 0."""
        before = self._distribution_of.pop(key, "")
        if distribution:
            self._distribution_of[key] = distribution
        if distribution != before:
            for value, by in ((before, -1), (distribution, 1)):
                if value:
                    gauge = self._distributions.labels(value)
                    gauge.set(gauge.value + by)
