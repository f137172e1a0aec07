"""The used node CIDRs of one cluster CIDR, as a bitmap.

upstream: pkg/controller/nodeipam/ipam/cidrset/cidr_set.go
"""

import ipaddress
from collections.abc import Iterable

from kcm_cli.component.metrics import Registry, exponential_buckets
from kcm_cli.machinery.addresses import Network
from kcm_cli.machinery.errors import SyncError

_PREFIX = "node_ipam_controller_"
_LABELS = ("clusterCIDR",)


class RangeMetrics:
    """The metrics of one cluster CIDR. The misspelt name of one of them is upstream's.

    upstream: pkg/controller/nodeipam/ipam/cidrset/metrics.go
    """

    def __init__(self, registry: Registry, cluster_cidr: str) -> None:
        self._size = 1
        self._allocations = registry.counter(
            f"{_PREFIX}cidrset_cidrs_allocations_total", "Number of allocated CIDRs.", labels=_LABELS
        ).labels(cluster_cidr)
        self._releases = registry.counter(
            f"{_PREFIX}cidrset_cidrs_releases_total", "Number of released CIDRs.", labels=_LABELS
        ).labels(cluster_cidr)
        self._maximum = registry.gauge(
            f"{_PREFIX}cirdset_max_cidrs", "Number of CIDRs, free or allocated.", labels=_LABELS
        ).labels(cluster_cidr)
        self._usage = registry.gauge(
            f"{_PREFIX}cidrset_usage_cidrs", "The share of the ranges of nodes that is taken.", labels=_LABELS
        ).labels(cluster_cidr)
        self._tries = registry.histogram(
            f"{_PREFIX}cidrset_allocation_tries_per_request",
            "Number of allocated CIDRs that were tried before a free one.",
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


class CIDRError(SyncError):
    """A CIDR cannot be allocated or released."""


class Unreadable(CIDRError):
    """A node's podCIDR cannot be parsed."""


class CIDRSet:
    """The subnets of ``network`` with a prefix length of ``node_prefix``, allocated in turn. upstream: CidrSet."""

    def __init__(self, network: Network, node_prefix: int, metrics: RangeMetrics) -> None:
        self._network = network
        self._shift = network.max_prefixlen - node_prefix
        self._node_prefix = node_prefix
        self._metrics = metrics
        self._size = 1 << (node_prefix - network.prefixlen)
        self._used = 0
        self._count = 0
        self._next = 0
        metrics.set_size(self._size)

    def take(self) -> Network:
        """Allocate the first free subnet after the last allocated one. Raises CIDRError."""
        if self._count == self._size:
            raise CIDRError(
                "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range"
            )
        index = _first_zero(self._used, self._next)
        if index >= self._size:
            index = _first_zero(self._used, 0)
        self._metrics.tried((index - self._next) % self._size)
        self._next = (index + 1) % self._size
        self._mark(1 << index)
        base = int(self._network.network_address) + (index << self._shift)
        return ipaddress.ip_network((base, self._node_prefix))

    def occupy(self, cidr: Network) -> None:
        """Mark the subnets in ``cidr`` as used. Raises CIDRError if it is outside the set."""
        self._mark(self._bits(cidr))

    def release(self, cidr: Network, kept: Iterable[Network] = ()) -> None:
        """Release the subnets in ``cidr``, but not those of ``kept``, which are inside the set. Raises CIDRError if
        ``cidr`` is outside."""
        freed = self._used & self._bits(cidr)
        first, last = self._span(cidr)
        for other in kept:
            begin, end = self._span(other)
            if begin <= last and first <= end:
                freed &= ~self._bits(other)
        self._used ^= freed
        self._count -= freed.bit_count()
        self._metrics.released(freed.bit_count(), self._count)

    def _mark(self, bits: int) -> None:
        new = bits & ~self._used
        self._used |= new
        self._count += new.bit_count()
        self._metrics.taken(new.bit_count(), self._count)

    def _bits(self, cidr: Network) -> int:
        if cidr.version != self._network.version or not _overlap(cidr, self._network):
            raise CIDRError(f"cidr {cidr} is out the range of cluster cidr {self._network}")
        first, last = self._span(cidr)
        return ((1 << (last - first + 1)) - 1) << first

    def _span(self, cidr: Network) -> tuple[int, int]:
        """The first and the last subnet that a network is, or is a part, of."""
        if cidr.prefixlen <= self._network.prefixlen:
            return 0, self._size - 1
        base = int(self._network.network_address)
        return (int(cidr.network_address) - base) >> self._shift, (int(cidr.broadcast_address) - base) >> self._shift


def overlap(one: Network, other: Network) -> bool:
    """Whether two networks have addresses in common. Their families may differ."""
    return one.version == other.version and _overlap(one, other)


def _overlap(one: Network, other: Network) -> bool:
    shift = one.max_prefixlen - min(one.prefixlen, other.prefixlen)
    return int(one.network_address) >> shift == int(other.network_address) >> shift


def _first_zero(bits: int, start: int) -> int:
    rest = ~(bits >> start)
    return start + (rest & -rest).bit_length() - 1
