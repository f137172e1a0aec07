"""What each node reported last, and when.

The conditions of a node that reports neither by its status nor by its Lease become Unknown.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go#tryUpdateNodeHealth
"""

import asyncio
import logging
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.api.coordination import LEASES, Lease
from kcm_cli.api.core import NODES, Condition, Node
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.component.logs import V1, V2
from kcm_cli.controllers.node_lifecycle import plan
from kcm_cli.controllers.node_lifecycle.plan import (
    NEVER,
    READY,
    Health,
    Moment,
    Periods,
    Renewal,
    past_grace_period,
    update_health,
)
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.durations import format_duration
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.actions import Path, Update, Value
from kcm_cli.planning.conditions import find
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

ATTEMPTS = 5
RETRY_S = 0.02


class ReadyNode(msgspec.Struct, frozen=True):
    """A node that was ready at the last check, with its Lease at that time. zone: None if it is in no zone."""

    node: Node
    lease: Lease | None
    zone: str | None


class NodeHealth:
    """The health of all nodes, by name."""

    def __init__(self, context: ControllerContext, periods: Periods) -> None:
        self._clock, self._client, self._informers = context.clock, context.client, context.informers
        self._periods = periods
        self._leases = context.cache(LEASES)
        self._health: dict[str, Health] = {}
        self._steady: dict[str, ReadyNode] = {}
        self._live: Mapping[str, Lease] | None = None
        """The Leases on the API server, if they were listed in this pass."""
        self._listing = asyncio.Lock()

    def begin(self) -> None:
        """Begin a pass over all nodes."""
        self._live = None

    def forget(self, name: str) -> None:
        self._health.pop(name, None)
        self._steady.pop(name, None)

    def is_bad(self, name: str) -> bool:
        """Whether a node is known and not ready."""
        health = self._health.get(name)
        return health is not None and health.ready is not None and health.ready.status != "True"

    def settled(self, node: Node, lease: Lease | None, zone: str | None) -> None:
        """Remember a ready node whose check found nothing to write."""
        self._steady[node.name] = ReadyNode(node, lease, zone)

    def restart(self) -> None:
        """Let the grace periods of all nodes begin now."""
        now = self._clock.monotonic()
        for name, health in self._health.items():
            self._health[name] = Health(now, health.ready, health.renewed)

    def unchanged(self, node: Node) -> tuple[str | None, Condition | None] | None:
        """(the zone, the Ready condition) of a node that was ready at the last check and has not changed since, whose
        Lease is recorded; None for another node, and if its grace period has passed.

        The condition: a check of a ready node depends on the Node, its Lease and the time only, and the last one found
        nothing to write. A kubelet writes its Node every five minutes, and then there is a whole check.
        """
        steady, health = self._steady.get(node.name), self._health.get(node.name)
        if steady is None or health is None or steady.node is not node:
            return None
        lease = self.lease(node)
        if lease is not steady.lease:
            now = Moment(self._clock.now(), self._clock.monotonic())
            health = self._health[node.name] = update_health(health, node, _renewed(lease), now)
            self._steady[node.name] = replace(steady, lease=lease)
        if past_grace_period(health, self._periods, self._clock.monotonic()):
            return None
        return steady.zone, health.ready

    def lease(self, node: Node) -> Lease | None:
        return self._leases.store.get(f"{LEASE_NAMESPACE}/{node.name}")

    async def update(self, node: Node) -> tuple[Node, Condition | None, Condition | None]:
        """(the present node, its Ready condition as observed, its Ready condition after this check).

        A failed write is retried on the node's latest version. Raises ApiError, TransportError.
        """
        attempt = 1
        while True:
            try:
                return await self._try_update(node)
            except RequestError as error:
                if attempt == ATTEMPTS:
                    raise
                log.error("Error updating node", extra={"fields": {"node": kobj(node), "err": str(error)}})
            attempt += 1
            await self._clock.sleep(RETRY_S)
            node = await self._client.get(NODES, "", node.name)

    async def _try_update(self, node: Node) -> tuple[Node, Condition | None, Condition | None]:
        now = Moment(self._clock.now(), self._clock.monotonic())
        renewed = _renewed(self.lease(node))
        known = self._health.get(node.name)
        if known is None:
            fields: dict[str, object] = {"node": kobj(node)}
            log.info("Missing timestamp for Node. Assuming now as a timestamp", extra={"fields": fields})
        health = self._health[node.name] = update_health(known, node, renewed, now)
        if health.ready is not None and (known is None or known.ready is None):
            more = {"node": kobj(node)}
            log.log(V1, "Creating timestamp entry for newly observed Node", extra={"fields": more})
        before = find(node.status.conditions, READY)
        if not past_grace_period(health, self._periods, now.monotonic):
            return node, before, before
        conditions = plan.status(node, now.wall)
        ready = find(conditions, READY)
        if ready != before and await self._is_renewed(node):
            fields = {"node": kobj(node)}
            log.log(V2, "The Lease of the node is renewed, the cache does not show it", extra={"fields": fields})
            return node, before, before
        if ready != before:
            if ready is not None and before is not None:
                fields = {
                    "node": kobj(node),
                    "duration": format_duration(now.monotonic - health.probe),
                    "nodeConditionType": READY,
                    "currentCondition": msgspec.to_builtins(before),
                }
                log.log(V2, "Node hasn't been updated", extra={"fields": fields})
            else:
                fields = {"nodeConditionType": READY, "node": kobj(node)}
                log.log(V2, "Condition of node was never updated by kubelet", extra={"fields": fields})
            changes: dict[Path, Value] = {("status", "conditions"): msgspec.to_builtins(conditions)}
            reason = "kubelet does not report"
            await writes.send(self._client, Update(NODES, node, changes, "status", reason=reason))
            self._health[node.name] = Health(health.probe, ready, health.renewed)
        return node, before, ready

    async def _is_renewed(self, node: Node) -> bool:
        """Whether a node that seems to be silent has renewed its Lease, and the cache is behind. Then its health is
        updated."""
        lease = (await self._live_leases()).get(node.name)
        now = Moment(self._clock.now(), self._clock.monotonic())
        health = update_health(self._health.get(node.name), node, _renewed(lease), now)
        if past_grace_period(health, self._periods, now.monotonic):
            return False
        self._health[node.name] = health
        return True

    async def _live_leases(self) -> Mapping[str, Lease]:
        """The Leases on the API server by node, listed once in a pass. None if that fails: the cache decides."""
        async with self._listing:
            if self._live is None:
                try:
                    found = await self._informers.list_now(LEASES, LEASE_NAMESPACE)
                    self._live = {lease.name: lease for lease in found.items}
                except RequestError as error:
                    log.log(V2, "Leases cannot be listed, the cache decides", extra={"fields": {"err": str(error)}})
                    self._live = {}
            return self._live


def _renewed(lease: Lease | None) -> Renewal:
    return Renewal(lease.version, lease.spec.renew_time or "") if lease is not None else NEVER
