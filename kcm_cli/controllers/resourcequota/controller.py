"""resourcequota-controller: recalculates the usage of quotas. Admission adds what is created; this controller finds
what was released.

upstream: pkg/controller/resourcequota
"""

import logging
from collections.abc import Iterator
from typing import NamedTuple

from kcm_cli.api.core import PODS, RESOURCE_QUOTAS, ResourceQuota
from kcm_cli.component.logs import V2
from kcm_cli.controllers.resourcequota import plan
from kcm_cli.controllers.resourcequota.config import ResourceQuotaConfig
from kcm_cli.controllers.resourcequota.monitors import Monitors
from kcm_cli.controllers.resourcequota.pace import PACE_S, Pace
from kcm_cli.controllers.resourcequota.plan import Features, GroupResource
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch, starting
from kcm_cli.engine.definitions import Refreshes
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.planning.actions import Path, Update, Value
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.quota.scopes import requirements
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import NAMESPACE
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

NOT_LISTED_S = 0.2
"""The delay before a quota whose kinds are still being listed is synced again."""
LISTING_S = 30.0
"""The time for which a sync waits until a kind is listed. After that the quota is counted without the kind."""


class Kinds(NamedTuple):
    """The kinds that a quota limits: those whose objects are measured, and those whose objects are counted. listing:
    those that are not listed yet, and are in neither of the others, with the seconds since their list began."""

    measured: frozenset[GroupResource]
    counted: frozenset[GroupResource]
    listing: dict[GroupResource, float]


class ResourceQuotaController:
    """A recount (the first two queues; keys are quotas, in the second one those that cannot be enforced yet) makes the
    usage equal to the objects in the caches. It follows a change of the quota, the release of an object, and a resync.
    Keys of the third queue are a namespace and a kind of which something was released, or a deletion is overdue.

    A check (the fourth queue; keys are quotas) follows a new object and a change of the usage. It raises a usage that
    is too low, and lowers one that is too high when that is safe (see ``pace``).
    """

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._queue, _, self._changes, self._checks = context.queues
        self._quotas = context.cache(RESOURCE_QUOTAS)
        self.sync_period_s = context.config(ResourceQuotaConfig).sync_period_s
        enabled = context.gates.enabled
        features = Features(
            extended_resources=enabled("DRAExtendedResource"),
            pod_level_resources=enabled("PodLevelResources"),
            given_to_pods=enabled("InPlacePodVerticalScaling"),
            given_to_claims=enabled("RecoverVolumeExpansionFailure"),
            attributes_class=enabled("VolumeAttributesClass"),
        )
        self._monitors = Monitors(context, features, self._freed, self._appeared, self._ending)
        self.discovery = Refreshes(context, self.refresh, self._monitors.awaits)
        self._pace = Pace(context.clock)

    async def sync(self, key: str) -> float | None:
        """Recount a quota, and again when the deletion of a pod becomes overdue: that ends its charge."""
        before = self._quotas.store.get(key)
        if before is None:
            return None
        kinds = await self._ready(before)
        if kinds is None:
            return NOT_LISTED_S
        quota = self._present(before)
        if quota is None:
            return None
        self._pace.recounted(key)
        await self._write(quota, self._read(quota, kinds))
        return LISTING_S if kinds.listing else self._monitors.due_s(kinds.measured, before.namespace)

    async def check(self, key: str) -> float | None:
        """Raise a usage that is too low. Lower one that is too high if it has not changed for a minute."""
        before = self._quotas.store.get(key)
        kinds = await self._ready(before) if before is not None else None
        if before is None or kinds is None:
            return None
        quota = self._present(before)
        if quota is None or quota.status.used is None:
            return None
        used = self._read(quota, kinds)
        rest_s = self._pace.lowering_s(key)
        raised = plan.not_less(used, quota.status.used, used) if rest_s > 0 else used
        await self._write(quota, raised)
        return rest_s if raised != used else None

    async def _ready(self, quota: ResourceQuota) -> Kinds | None:
        """The kinds that a quota limits, with their objects measured; None while they are being listed."""
        names = tuple(quota.spec.hard or ())
        if plan.asks_for_devices(names) and not await self._monitors.follow_classes():
            return None
        measured, counted = plan.plan_kinds(names, self._monitors.classes)
        listing = await self._monitors.follow(measured | counted)
        if listing and min(listing.values()) < LISTING_S:
            return None
        kinds = Kinds(measured - listing.keys(), counted - listing.keys(), listing)
        await self._monitors.measure(kinds.measured, quota.namespace)
        return kinds

    async def _write(self, quota: ResourceQuota, used: dict[str, Quantity]) -> None:
        """Write the usage. A charge that the cache does not show yet makes the write conflict."""
        status = plan.status(quota, used)
        if status is not None:
            changes: dict[Path, Value] = {("status", "hard"): status.hard, ("status", "used"): status.used}
            update = Update(RESOURCE_QUOTAS, quota, changes, "status", reason="usage or limits changed")
            await writes.send(self._client, update)

    def _present(self, quota: ResourceQuota) -> ResourceQuota | None:
        """The present version of a quota; None if it was deleted, or if a change of its spec or another quota of its
        name has queued the key again. The totals of its namespace are dropped if the namespace has no quota any more.
        """
        if not self._quotas.store.count(NAMESPACE, quota.namespace):
            self._monitors.forget(quota.namespace)
        now = self._quotas.store.get(quota.key)
        return now if now is not None and (now.uid, now.spec) == (quota.uid, quota.spec) else None

    def _read(self, quota: ResourceQuota, kinds: Kinds) -> dict[str, Quantity]:
        asked, namespace, names = requirements(quota), quota.namespace, quota.spec.hard or {}
        parts: list[tuple[frozenset[str], Amounts]] = []
        for kind in sorted(kinds.measured):
            amounts = self._monitors.used(kind, namespace, asked)
            if amounts is not None:
                classes = self._monitors.classes
                parts.append((frozenset(name for name in names if plan.covers(kind, name, classes)), amounts))
        for kind in sorted(kinds.counted):
            found = self._monitors.count(kind, namespace)
            if found is not None:
                parts.append((frozenset(plan.counted_names(kind)), plan.count_of(kind, found, scoped=bool(asked))))
        classes = self._monitors.classes
        doubtful = self._monitors.unmeasured(kinds.measured, namespace)
        kept = {name for name in names if any(plan.covers(kind, name, classes) for kind in doubtful)}
        return plan.not_less(plan.usage(names, parts), quota.status.used or {}, kept)

    async def replenish(self, key: str) -> None:
        """Queue the quotas in a namespace that limit a kind of which something was released."""
        for quota in self._limiting(key):
            self._queue.add_after(quota.key, self._pace.recount_s(quota.key), retry=False)

    def _limiting(self, key: str) -> Iterator[ResourceQuota]:
        """The quotas in a namespace that limit a kind."""
        namespace, _, named = key.partition("/")
        plural, _, group = named.partition(".")
        for quota in self._quotas.store.by_index(NAMESPACE, namespace):
            hard = (quota.spec.hard or {}).keys() | (quota.status.hard or {}).keys()  # the status may lag behind
            if any(plan.covers((group, plural), name, self._monitors.classes) for name in hard):
                yield quota

    async def resync(self) -> None:
        """Recount all quotas from the caches, and stop watching kinds that none of them limits."""
        self._monitors.keep_asked()
        await self._monitors.restart()
        for quota in self._quotas.store.list():
            self._queue.add(quota.key)

    async def refresh(self) -> None:
        """Queue the quotas of kinds that have started or stopped being served. upstream: Sync."""
        try:
            changed = await self._monitors.refresh()
        except RequestError as error:
            log.error("Error during resource discovery", extra={"fields": {"err": str(error)}})
            return
        if changed:
            diff = ", ".join(sorted(f"{plural}.{group}" for group, plural in changed))
            text = "syncing resource quota controller with updated resources from discovery"
            log.log(V2, text, extra={"fields": {"diff": diff}})
            log.log(V2, "synced quota controller")
        async for quota in in_turns(self._quotas.store.list() if changed else (), OBJECTS):
            measured, counted = plan.plan_kinds(quota.spec.hard or (), self._monitors.classes)
            if changed & (measured | counted):
                self._queue.add(quota.key)

    # -- events

    def added(self, quota: ResourceQuota) -> Keys:
        """The key of a quota that can be enforced."""
        return () if plan.is_urgent(quota, self._monitors.classes) else (quota.key,)

    def added_urgent(self, quota: ResourceQuota) -> Keys:
        """The key of a quota that cannot be enforced yet."""
        return () if self.added(quota) else (quota.key,)

    def updated(self, old: ResourceQuota, new: ResourceQuota) -> Keys:
        """The key of a quota whose limits changed. A changed usage is checked, or recounted later if objects were
        released while its charges were not in the cache yet."""
        if old.status.used != new.status.used:
            self._pace.charged(new.key)
            self._checks.add_after(new.key, PACE_S, retry=False)
            if self._pace.is_behind(old):
                self._queue.add_after(new.key, PACE_S, retry=False)
        return self.added(new) if _is_other(old, new) else ()

    def updated_urgent(self, old: ResourceQuota, new: ResourceQuota) -> Keys:
        """The key of a changed quota that cannot be enforced yet."""
        return self.added_urgent(new) if _is_other(old, new) else ()

    def deleted(self, quota: ResourceQuota) -> Keys:
        """Forget the quota; the totals of a namespace are dropped with its last quota. No key is queued."""
        log.info("Resource quota has been deleted", extra={"fields": {"key": quota.key}})
        self._pace.forget(quota.key)
        if not self._quotas.store.count(NAMESPACE, quota.namespace):
            self._pace.forget_namespace(quota.namespace)
            self._monitors.forget(quota.namespace)
        return ()

    def _freed(self, kind: GroupResource, meta: ObjectMeta) -> None:
        if self._quotas.store.count(NAMESPACE, meta.namespace):
            self._pace.released(meta)
            self._changes.add(_place(kind, meta.namespace))

    def _ending(self, kind: GroupResource, namespace: str, seconds: float) -> None:
        if self._quotas.store.count(NAMESPACE, namespace):
            self._changes.add_after(_place(kind, namespace), seconds, retry=False)

    def _appeared(self, namespace: str) -> None:
        for quota in self._quotas.store.by_index(NAMESPACE, namespace):
            self._checks.add_after(quota.key, PACE_S, retry=False)


def _place(kind: GroupResource, namespace: str) -> str:
    """The key of a kind's objects in a namespace."""
    group, plural = kind
    return f"{namespace}/{plural}.{group}"


def _is_other(old: ResourceQuota, new: ResourceQuota) -> bool:
    return old.spec != new.spec or new.status.used is None


FAILURES = Failures(retried="Error processing resource quota work item", key="key")
CONTROLLER = Controller(
    ResourceQuotaController,
    (
        Queue(
            "resourcequota_primary",
            Watch(
                RESOURCE_QUOTAS,
                added=ResourceQuotaController.added,
                updated=ResourceQuotaController.updated,
                deleted=ResourceQuotaController.deleted,
            ),
            sync=ResourceQuotaController.sync,
            failures=FAILURES,
            workers=ResourceQuotaConfig,
            writes=(RESOURCE_QUOTAS,),
        ),
        Queue(
            "resourcequota_priority",
            Watch(
                RESOURCE_QUOTAS,
                added=ResourceQuotaController.added_urgent,
                updated=ResourceQuotaController.updated_urgent,
            ),
            sync=ResourceQuotaController.sync,
            failures=FAILURES,
            workers=ResourceQuotaConfig,
            writes=(RESOURCE_QUOTAS,),
        ),
        Queue("resource_quota_controller_resource_changes", sync=ResourceQuotaController.replenish),
        Queue(
            "resource_quota_controller_checks",
            sync=ResourceQuotaController.check,
            failures=FAILURES,
            workers=ResourceQuotaConfig,
            writes=(RESOURCE_QUOTAS,),
        ),
    ),
    passes=(
        Periodic(ResourceQuotaController.resync, pause_s=lambda controller: controller.sync_period_s, delayed=True),
    ),
    beside=lambda controller: (controller.discovery,),
    announces=starting("resource quota controller"),
    also_needs=(PODS.gvr.group_resource,),
)
