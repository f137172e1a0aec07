"""Allocates pod CIDRs to nodes, and reserves those that are not written to their nodes yet.

``cidr_set`` has the arithmetic; writes and Events are in ``controller``.

upstream: pkg/controller/nodeipam/ipam/range_allocator.go
"""

from collections.abc import Iterable, Iterator, Sequence

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


class Holders:
    """The nodes (uids) that have each podCIDR of one cluster CIDR. ``prefix``: the prefix length of the usual ones."""

    def __init__(self, prefix: int, services: Iterable[Network]) -> None:
        self._prefix = prefix
        self._services = tuple(services)
        self._nodes: dict[Network, set[str]] = {}
        self._unusual: set[Network] = set()

    def add(self, cidr: Network, node: str) -> None:
        self._nodes.setdefault(cidr, set()).add(node)
        if cidr.prefixlen != self._prefix:
            self._unusual.add(cidr)

    def remove(self, cidr: Network, node: str) -> None:
        nodes = self._nodes.get(cidr, set())
        nodes.discard(node)
        if not nodes:
            self._nodes.pop(cidr, None)
            self._unusual.discard(cidr)

    def beside(self, cidr: Network) -> Iterator[Network]:
        """The networks that may share a subnet with this one: of nodes, and of Services. Usual ones share none."""
        yield from self._services
        if cidr in self._nodes:
            yield cidr
        yield from self._unusual if cidr.prefixlen == self._prefix else self._nodes


class RangeAllocator:
    """The allocator, with one CIDRSet for each cluster CIDR. Methods do not await. upstream: rangeAllocator.

    Addresses that another node or a Service has stay occupied when a node is deleted: after a change of the mask size,
    the podCIDRs of two nodes may be parts of one that would be allocated today, or the other way round.
    """

    def __init__(self, sets: Sequence[CIDRSet], ranges: Ranges) -> None:
        self._sets = sets
        self._holders: list[Holders] = []
        self._reserved: dict[str, Assigned] = {}
        """By uid of the node."""
        for (network, prefix), one in zip(ranges.cluster, sets, strict=True):
            services = [service for service in ranges.services if overlap(service, network)]
            for service in services:
                one.occupy(service)
            self._holders.append(Holders(prefix, services))

    def occupy(self, node: Node | NodeRanges) -> None:
        """Mark a node's podCIDRs as used. Raises CIDRError for one outside the cluster CIDRs."""
        for index, cidr in self._parts(node):
            try:
                self._sets[index].occupy(cidr)
            except CIDRError as error:
                raise CIDRError(f"failed to mark cidr[{cidr}] as occupied for node: {node.name}: {error}") from error
            self._holders[index].add(cidr, node.uid)

    def settle(self, node: Node) -> None:
        """Mark the podCIDRs that a node has now as used, and release others that were reserved for it. Raises
        CIDRError."""
        for index, cidr in enumerate(self._reserved.pop(node.uid, ())):
            if str(cidr) not in node.spec.pod_cidrs:
                self._release(index, cidr, node.uid)
        self.occupy(node)

    def reserve(self, node: Node) -> Assigned:
        """Reserve CIDRs for a node without any; repeated calls return the same. Raises CIDRError."""
        reserved = self._reserved.get(node.uid)
        if reserved is None:
            reserved = self._reserved[node.uid] = self._take()
            for holders, cidr in zip(self._holders, reserved, strict=True):
                holders.add(cidr, node.uid)
        return reserved

    def release(self, node: Node | NodeRanges) -> None:
        """Release the CIDRs of a deleted node. Raises CIDRError for one outside the cluster CIDRs."""
        for index, cidr in enumerate(self._reserved.pop(node.uid, ())):
            self._release(index, cidr, node.uid)
        for index, cidr in self._parts(node):
            self._release(index, cidr, node.uid)

    def _release(self, index: int, cidr: Network, node: str) -> None:
        holders = self._holders[index]
        holders.remove(cidr, node)
        self._sets[index].release(cidr, holders.beside(cidr))

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

    def _parts(self, node: Node | NodeRanges) -> Iterator[tuple[int, Network]]:
        """The podCIDRs of a node, with the numbers of their cluster CIDRs."""
        for index, text in enumerate(node.spec.pod_cidrs):
            parsed = parse_cidr(text)
            if parsed is None:
                raise Unreadable(f"failed to parse node {node.name}, CIDR {text}")
            if index >= len(self._sets):
                raise CIDRError(
                    f"node:{node.name} has an allocated cidr: {text} at index:{index} "
                    "that does not exist in cluster cidrs configuration"
                )
            yield index, parsed[1]
