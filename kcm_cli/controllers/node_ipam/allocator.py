"""Allocates pod CIDRs to nodes, and reserves those that are not written to their nodes yet.

``cidr_set`` has the arithmetic; writes and Events are in ``controller``.

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
    """The podCIDRs of a NodeSpec; nothing else is decoded."""

    pod_cidrs: tuple[str, ...] = msgspec.field(default=(), name="podCIDRs")


class NodeRanges(Object, frozen=True, gc=False, kw_only=True):
    """A node of which only podCIDRs are decoded, so that no other field can make it undecodable."""

    spec: RangesSpec = RangesSpec()


NODE_RANGES = Resource(NODES.gvr, NODES.kind, NodeRanges, namespaced=False)


class RangeAllocator:
    """The allocator, with one CIDRSet for each cluster CIDR. Methods do not await. upstream: rangeAllocator."""

    def __init__(self, sets: Sequence[CIDRSet], ranges: Ranges) -> None:
        self._sets = sets
        self._reserved: dict[str, Assigned] = {}
        """By uid of the node."""
        for service in ranges.services:
            for (network, _), one in zip(ranges.cluster, sets, strict=True):
                if overlap(service, network):
                    one.occupy(service)

    def occupy(self, node: Node | NodeRanges) -> None:
        """Mark a node's podCIDRs as used. Raises CIDRError for one outside the cluster CIDRs."""
        for one, cidr in self._parts(node):
            try:
                one.occupy(cidr)
            except CIDRError as error:
                raise CIDRError(f"failed to mark cidr[{cidr}] as occupied for node: {node.name}: {error}") from error

    def settle(self, node: Node) -> None:
        """Mark the podCIDRs that a node has now as used, and release others that were reserved for it. Raises
        CIDRError."""
        reserved = self._reserved.pop(node.uid, ())
        for one, cidr in zip(self._sets, reserved, strict=False):
            if str(cidr) not in node.spec.pod_cidrs:
                one.release(cidr)
        self.occupy(node)

    def reserve(self, node: Node) -> Assigned:
        """Reserve CIDRs for a node without any; repeated calls return the same. Raises CIDRError."""
        reserved = self._reserved.get(node.uid)
        if reserved is None:
            reserved = self._reserved[node.uid] = self._take()
        return reserved

    def release(self, node: Node) -> None:
        """Release the CIDRs of a deleted node. Raises CIDRError for one outside the cluster CIDRs."""
        for one, cidr in zip(self._sets, self._reserved.pop(node.uid, ()), strict=False):
            one.release(cidr)
        for one, cidr in self._parts(node):
            one.release(cidr)

    def _take(self) -> Assigned:
        """One CIDR of each set, or none at all."""
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
