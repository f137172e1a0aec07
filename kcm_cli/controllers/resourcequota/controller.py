"""resourcequota-controller: counts what quotas limit; admission charges what is added, this finds what is gone.

upstream: pkg/controller/resourcequota
"""

from kcm_cli.api.core import RESOURCE_QUOTAS, ResourceQuota
from kcm_cli.controllers.resourcequota import plan
from kcm_cli.controllers.resourcequota.config import ResourceQuotaConfig
from kcm_cli.controllers.resourcequota.monitors import Monitors
from kcm_cli.controllers.resourcequota.snapshot import Snapshot
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.freshness import AGAIN_S, Freshness
from kcm_cli.engine.resync import with_resync
from kcm_cli.planning.actions import Path, Update, Value
from kcm_cli.runtime.store import NAMESPACE

NOT_LISTED_S = 0.2
"""How soon a quota is tried again whose kinds are still being listed."""
LISTING_S = 30.0
"""So long a kind may take; after that the others are counted without it."""


def build(context: ControllerContext) -> Runnable:
    config = context.config(ResourceQuotaConfig)
    controller = ResourceQuotaController(context)
    worker = context.worker(
        controller.queue, controller.sync, count=config.concurrent_syncs, waits_for=(controller.quotas,)
    )
    return with_resync(worker, controller.quotas, config.sync_period_s, controller.enqueue, context)


class ResourceQuotaController:
    """Keys are quotas."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock, self._client = context.clock, context.client
        self.queue = context.queue("resourcequota_primary")
        self.quotas = context.informers.get(RESOURCE_QUOTAS)
        self._fresh = Freshness(self.quotas)
        self._monitors = Monitors(context, self._freed)
        self.quotas.listen(on_add=self.enqueue, on_update=self._updated)

    async def sync(self, key: str) -> float | None:
        quota = self.quotas.store.get(key)
        if quota is None:
            return None
        if self._fresh.stale(quota):
            return AGAIN_S
        measured, counted = plan.kinds(quota)
        listing = await self._monitors.follow(measured | counted)
        if listing and min(listing.values()) < LISTING_S:
            return NOT_LISTED_S
        measured, counted = measured - listing.keys(), counted - listing.keys()
        namespace = quota.namespace
        counts = {kind: count for kind in counted if (count := self._monitors.count(kind, namespace)) is not None}
        documents = {kind: self._monitors.documents(kind, namespace) for kind in measured}
        used = plan.usage(Snapshot(quota, documents, counts), self._clock.now())
        status = plan.new_status(quota, used)
        if status is not None:
            changes: dict[Path, Value] = {("status", "hard"): status.hard, ("status", "used"): status.used}
            self._fresh.wrote(await writes.update(self._client, Update(RESOURCE_QUOTAS, quota, changes, "status")))
        return LISTING_S if listing else None

    def enqueue(self, quota: ResourceQuota) -> None:
        self.queue.add(quota.key)

    def _updated(self, old: ResourceQuota, new: ResourceQuota) -> None:
        """What admission charges needs no counting; a changed limit does."""
        if old.spec != new.spec or new.status.used is None:
            self.enqueue(new)

    def _freed(self, namespace: str) -> None:
        for quota in self.quotas.store.by_index(NAMESPACE, namespace):
            self.enqueue(quota)
