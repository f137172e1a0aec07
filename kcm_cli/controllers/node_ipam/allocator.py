"""Who has which range of pod addresses: the sets, and what is promised to nodes that do not have it yet.

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
    """One set for each range of the cluster. Called from one loop; nothing here waits."""

    def __init__(self, sets: Sequence[CIDRSet], ranges: Ranges) -> None:
        self._sets = sets
        self._promised: dict[str, Assigned] = {}
        """By uid of the node."""
        for service in ranges.services:
            for (network, _), one in zip(ranges.cluster, sets, strict=True):
                if overlap(service, network):
                    one.occupy(service)

    def occupy(self, node: Node | NodeRanges) -> None:
        """Take what a node has. Raises CIDRError for what is none of the cluster's."""
        for one, cidr in self._parts(node):
            try:
                one.occupy(cidr)
            except CIDRError as error:
                raise CIDRError(f"failed to mark cidr[{cidr}] as occupied for node: {node.name}: {error}") from error

    def settle(self, node: Node) -> None:
        """The node has its addresses: what it was promised beside them is free again. Raises CIDRError."""
        promised = self._promised.pop(node.uid, ())
        for one, cidr in zip(self._sets, promised, strict=False):
            if str(cidr) not in node.spec.pod_cidrs:
                one.release(cidr)
        self.occupy(node)

    def reserve(self, node: Node) -> Assigned:
        """What a node without addresses is to get, each time the same. Raises CIDRError."""
        promised = self._promised.get(node.uid)
        if promised is None:
            promised = self._promised[node.uid] = self._take()
        return promised

    def release(self, node: Node) -> None:
        """The node is gone. Raises CIDRError for addresses that are none of the cluster's."""
        for one, cidr in zip(self._sets, self._promised.pop(node.uid, ()), strict=False):
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
