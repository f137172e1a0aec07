"""node_ipam_controller_*: how full each range of pod addresses is.

The misspelt name of one is upstream's.

upstream: pkg/controller/nodeipam/ipam/cidrset/metrics.go
"""

from kcm_cli.component.metrics import Registry, exponential_buckets

_PREFIX = "node_ipam_controller_"
_LABELS = ("clusterCIDR",)


class RangeMetrics:
    """Of one range."""

    def __init__(self, registry: Registry, cluster_cidr: str) -> None:
        self._size = 1
        self._allocations = registry.counter(
            f"{_PREFIX}cidrset_cidrs_allocations_total", "How many ranges of nodes were taken.", labels=_LABELS
        ).labels(cluster_cidr)
        self._releases = registry.counter(
            f"{_PREFIX}cidrset_cidrs_releases_total", "How many ranges of nodes were given back.", labels=_LABELS
        ).labels(cluster_cidr)
        self._maximum = registry.gauge(
            f"{_PREFIX}cirdset_max_cidrs", "How many ranges of nodes there are, free or taken.", labels=_LABELS
        ).labels(cluster_cidr)
        self._usage = registry.gauge(
            f"{_PREFIX}cidrset_usage_cidrs", "The share of the ranges of nodes that is taken.", labels=_LABELS
        ).labels(cluster_cidr)
        self._tries = registry.histogram(
            f"{_PREFIX}cidrset_allocation_tries_per_request",
            "How many ranges were found taken before a free one.",
            exponential_buckets(1, 5, 5),
            labels=_LABELS,
        ).labels(cluster_cidr)

    def set_size(self, size: int) -> None:
        self._size = size
        self._maximum.set(size)

    def tried(self, count: int) -> None:
        self._tries.observe(count)

    def taken(self, count: int, used: int) -> None:
        self._allocations.inc(count)
        self._usage.set(used / self._size)

    def released(self, count: int, used: int) -> None:
        self._releases.inc(count)
        self._usage.set(used / self._size)
