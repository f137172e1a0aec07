"""Which node has which range of pod addresses, and which are reserved for nodes that do not have them yet.

A file of its own: the arithmetic of ranges (``cidr_set``) below it, writes and events above it.

upstream: pkg/controller/nodeipam/ipam/range_allocator.go
"""

from collections.abc import Iterator, Sequence

import msgspec

from kcm_cli.api.core import NODES, Node
from kcm_cli.api.resource import Resource
from kcm_cli.controllers.node_ipam.cidr_set import CIDRError, CIDRSet, Unreadable, overlap
from kcm_cli.controllers.node_ipam.ranges import Ranges
from kcm_cli.machinery.addresses import Network, parse_cidr
from kcm_cli.machinery.meta import Object, View

Assigned = tuple[Network, ...]


class RangesSpec(View, frozen=True, gc=False):
    """Of a NodeSpec, the ranges alone."""

    pod_cidrs: tuple[str, ...] = msgspec.field(default=(), name="podCIDRs")


class NodeRanges(Object, frozen=True, gc=False, kw_only=True):
    """A node of which nothing is read but its ranges, so that nothing else in it can hide them."""

    spec: RangesSpec = RangesSpec()


NODE_RANGES = Resource(NODES.gvr, NODES.kind, NodeRanges, namespaced=False)


class RangeAllocator:
    """One set for each range of the cluster (upstream: rangeAllocator). Called from one loop; nothing here waits."""

    def __init__(self, sets: Sequence[CIDRSet], ranges: Ranges) -> None:
        self._sets = sets
        self._reserved: dict[str, Assigned] = {}
        """By uid of the node."""
        for service in ranges.services:
            for (network, _), one in zip(ranges.cluster, sets, strict=True):
                if overlap(service, network):
                    one.occupy(service)

    def occupy(self, node: Node | NodeRanges) -> None:
        """Mark what a node has as used. Raises CIDRError for what is outside of the cluster's ranges."""
        for one, cidr in self._parts(node):
            try:
                one.occupy(cidr)
            except CIDRError as error:
                raise CIDRError(f"failed to mark cidr[{cidr}] as occupied for node: {node.name}: {error}") from error

    def settle(self, node: Node) -> None:
        """The node has its addresses: others that were reserved for it are released. Raises CIDRError."""
        reserved = self._reserved.pop(node.uid, ())
        for one, cidr in zip(self._sets, reserved, strict=False):
            if str(cidr) not in node.spec.pod_cidrs:
                one.release(cidr)
        self.occupy(node)

    def reserve(self, node: Node) -> Assigned:
        """Reserve ranges for a node without any, each time the same. Raises CIDRError."""
        reserved = self._reserved.get(node.uid)
        if reserved is None:
            reserved = self._reserved[node.uid] = self._take()
        return reserved

    def release(self, node: Node) -> None:
        """The node was deleted. Raises CIDRError for addresses outside of the cluster's ranges."""
        for one, cidr in zip(self._sets, self._reserved.pop(node.uid, ()), strict=False):
            one.release(cidr)
        for one, cidr in self._parts(node):
            one.release(cidr)

    def _take(self) -> Assigned:
        """One part of each set, or none of any."""
        taken: list[Network] = []
        for index, one in enumerate(self._sets):
            try:
                taken.append(one.take())
            except CIDRError as error:
                for held, cidr in zip(self._sets, taken, strict=False):
                    held.release(cidr)
                raise CIDRError(f"failed to allocate cidr from cluster cidr at idx:{index}: {error}") from error
        return tuple(taken)

    def _parts(self, node: Node | NodeRanges) -> Iterator[tuple[CIDRSet, Network]]:
        for index, text in enumerate(node.spec.pod_cidrs):
            parsed = parse_cidr(text)
            if parsed is None:
                raise Unreadable(f"failed to parse node {node.name}, CIDR {text}")
            if index >= len(self._sets):
                raise CIDRError(
                    f"node:{node.name} has an allocated cidr: {text} at index:{index} "
                    "that does not exist in cluster cidrs configuration"
                )
            yield self._sets[index], parsed[1]
