"""node-ipam-controller: allocates a pod CIDR out of --cluster-cidr to each node, with --allocate-node-cidrs.

Allocations are in memory, and read from the nodes at the start. A CIDR that could not be written stays reserved until
its node is deleted: a write without an answer may have succeeded.

upstream: pkg/controller/nodeipam/ipam/range_allocator.go
"""

import logging
from contextlib import suppress

from kcm_cli.api.core import NODES, Node
from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.controllers.node_ipam.allocator import NODE_RANGES, NodeRanges, RangeAllocator
from kcm_cli.controllers.node_ipam.cidr_set import CIDRError, CIDRSet, RangeMetrics, Unreadable
from kcm_cli.controllers.node_ipam.config import NodeIPAMConfig
from kcm_cli.controllers.node_ipam.ranges import problems, ranges
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, starting
from kcm_cli.engine.descriptor import StartError
from kcm_cli.engine.worker import Failures, until_synced
from kcm_cli.engine.writes import Retries, retry_on
from kcm_cli.machinery.addresses import Network
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.actions import STRATEGIC_MERGE, EventRef, Notice
from kcm_cli.rest.listing import Listed, list_readable
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

WORKERS = 30
ATTEMPTS = 3
LIST_PAUSE_S, LIST_LIMIT_S = 10.0, 600.0


class NodeIPAMController:
    """Keys are names of nodes."""

    def __init__(self, context: ControllerContext) -> None:
        """Raises StartError for invalid options."""
        shared, config = context.config(KubeCloudSharedConfig), context.config(NodeIPAMConfig)
        found = problems(shared, config)
        if found:
            raise StartError("; ".join(f"--{text}" for text in found))
        wanted = ranges(shared, config)
        for text in wanted.unread:
            log.warning("No range of service addresses", extra={"fields": {"CIDR": text}})
        metrics = context.metrics
        sets = [CIDRSet(network, prefix, RangeMetrics(metrics, str(network))) for network, prefix in wanted.cluster]
        self._client, self._clock = context.client, context.clock
        self._recorder = context.recorder_for("cidrAllocator")
        self._allocator = RangeAllocator(sets, wanted)
        self._nodes = context.cache(NODES)

    async def occupy(self) -> None:
        """Mark the podCIDRs of all nodes as used. Raises StartError if nodes cannot be listed, or have CIDRs outside
        the cluster CIDRs.

        A podCIDR that cannot be parsed is logged and skipped. Upstream exits there, too.
        """
        found = await self._all_nodes()
        for unknown in found.unknown:
            log.error("Invalid podCIDR of a node skipped", extra={"fields": {"node": unknown.key, "err": unknown.why}})
        for node in found.items:
            try:
                self._allocator.occupy(node)
            except Unreadable as error:
                log.error("Invalid podCIDR of a node skipped", extra={"fields": {"node": node.name, "err": str(error)}})
            except CIDRError as error:
                raise StartError(f"node-ipam-controller: {error}") from error
        await until_synced((self._nodes,))
        for node in found.items:
            await self._release_if_gone(node)

    async def _release_if_gone(self, listed: NodeRanges) -> None:
        """Release the podCIDRs of a node that was deleted after it was listed and before the cache had it, or before
        they were marked: no later event says so."""
        known = self._nodes.store.get(listed.name)
        if not listed.spec.pod_cidrs or (known is not None and known.uid == listed.uid):
            return
        try:
            live = await self._client.find(NODE_RANGES, "", listed.name)
        except RequestError as error:
            fields = {"node": listed.name, "err": str(error)}
            log.error("A node that may have been deleted keeps its podCIDRs", extra={"fields": fields})
            return
        if live is None or live.uid != listed.uid:
            self._release(listed)

    async def _all_nodes(self) -> Listed[NodeRanges]:
        """All nodes from the API server, since a cache may lack what the previous leader has just allocated."""
        deadline = self._clock.monotonic() + LIST_LIMIT_S
        while True:
            try:
                return await list_readable(self._client, NODE_RANGES)
            except RequestError as error:
                log.error("Failed to list all nodes", extra={"fields": {"err": str(error)}})
                if self._clock.monotonic() + LIST_PAUSE_S > deadline:
                    text = f"failed to list all nodes in {LIST_LIMIT_S:g}s, cannot proceed without knowing their ranges"
                    raise StartError(text) from error
            await self._clock.sleep(LIST_PAUSE_S)

    async def sync(self, key: str) -> None:
        node = self._nodes.store.get(key)
        if node is None or node.deleting:
            return
        if node.spec.pod_cidrs:
            self._allocator.settle(node)
            return
        try:
            cidrs = self._allocator.reserve(node)
        except CIDRError:
            self._emit(node, "CIDRNotAvailable")
            raise
        await self._assign(node, cidrs)

    async def _assign(self, node: Node, cidrs: tuple[Network, ...]) -> None:
        try:
            await retry_on(Retries(ATTEMPTS, (RequestError,)), lambda: self._patch(node, cidrs))
        except RequestError as error:
            fields = {"node": kobj(node), "podCIDRs": [str(cidr) for cidr in cidrs], "err": str(error)}
            log.error("Failed to update node PodCIDR after multiple attempts", extra={"fields": fields})
            self._emit(node, "CIDRAssignmentFailed")
            raise

    async def _patch(self, node: Node, cidrs: tuple[Network, ...]) -> None:
        texts: list[object] = [str(cidr) for cidr in cidrs]
        body = {"metadata": {"uid": node.uid}, "spec": {"podCIDR": texts[0], "podCIDRs": texts}}
        reason = "node has no podCIDRs"
        await self._client.patch(NODES, "", node.name, body, content_type=STRATEGIC_MERGE, reason=reason)
        log.info("Set node PodCIDR", extra={"fields": {"node": kobj(node), "podCIDRs": texts}})

    def _emit(self, node: Node, reason: str) -> None:
        ref = EventRef("v1", "Node", "", node.name, node.uid)
        self._recorder.emit(Notice(ref, "Normal", reason, f"Node {node.name} status is now: {reason}"))

    # -- events

    def added(self, node: Node) -> Keys:
        """The node's name. podCIDRs that it has are marked at once: another node may be synced before it."""
        if node.spec.pod_cidrs:
            with suppress(CIDRError):  # the sync says so
                self._allocator.settle(node)
        return (node.name,)

    def changed(self, old: Node, new: Node) -> Keys:
        """The node's name, if it has no podCIDRs, or other ones than before; these are marked at once."""
        return self.added(new) if not new.spec.pod_cidrs or new.spec.pod_cidrs != old.spec.pod_cidrs else ()

    def deleted(self, node: Node) -> Keys:
        """Release the node's CIDRs; no key is queued."""
        self._release(node)
        return ()

    def _release(self, node: Node | NodeRanges) -> None:
        try:
            self._allocator.release(node)
        except CIDRError as error:
            log.error("Error while processing CIDR Release", extra={"fields": {"node": node.name, "err": str(error)}})


CONTROLLER = Controller(
    NodeIPAMController,
    Queue(
        "cidrallocator_node",
        Watch(
            NODES,
            added=NodeIPAMController.added,
            updated=NodeIPAMController.changed,
            deleted=NodeIPAMController.deleted,
        ),
        sync=NodeIPAMController.sync,
        failures=Failures(retried="Error processing node work item", err="error syncing '{key}': {error}, requeuing"),
        workers=WORKERS,
    ),
    prepare=NodeIPAMController.occupy,
    enabled=lambda context: context.config(KubeCloudSharedConfig).allocate_node_cidrs,
    announces=starting("ipam controller") + starting("range CIDR allocator"),
)
