"""resourcequota-controller: recalculates the usage of quotas. Admission adds what is created; this controller finds
what was released.

upstream: pkg/controller/resourcequota
"""

import logging
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from kcm_cli.api.core import RESOURCE_QUOTAS, ResourceQuota
from kcm_cli.controllers.resourcequota import plan
from kcm_cli.controllers.resourcequota.config import ResourceQuotaConfig
from kcm_cli.controllers.resourcequota.monitors import ABSENT_S, Monitors
from kcm_cli.controllers.resourcequota.plan import Features, GroupResource
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch
from kcm_cli.engine.passes import OBJECTS, in_turns
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.planning.actions import Path, Update, Value
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.quota.scopes import requirements
from kcm_cli.rest.errors import Conflict
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import NAMESPACE

log = logging.getLogger(__name__)

NOT_LISTED_S = 0.2
"""The delay before a quota whose kinds are still being listed is synced again."""
LISTING_S = 30.0
"""The time for which a sync waits until a kind is listed. After that the quota is counted without the kind."""
PACE_S = 1.0
"""The shortest time between two writes of a quota whose usage decreases."""
REQUEST_S = 60.0
"""The longest time between the charge of an object and its creation: the API server's --request-timeout."""


class Counted(NamedTuple):
    """The last count of a quota: its version at that time, and until when objects may appear whose charge the write of
    the count has overwritten."""

    version: float
    until: float = 0.0


class ResourceQuotaController:
    """Keys of the first two queues are quotas; the second one has those that cannot be enforced yet. Keys of the third
    queue are a namespace and a kind of which something was released; those of the fourth, one of which something
    appeared."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock, self._client = context.clock, context.client
        self._queue, _, self._changes, self._appearances = context.queues
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
        self._monitors = Monitors(context, features, self._freed, self._appeared)
        self._looked: dict[str, float] = {}
        self._overtaken: dict[str, float] = {}
        """Quotas whose write conflicted with a charge by admission, and when they may be written again."""
        self._uncharged: set[str] = set()
        """Quotas that were not written since one of their objects was deleted."""
        self._recounts: set[str] = set()
        """Quotas to recount. The usage of others is not lowered, since admission may just have charged an object."""
        self._counted: dict[str, Counted] = {}
        """The last counts, to find objects that are older than a count but were not in the cache yet."""

    async def sync(self, key: str) -> float | None:
        quota = self._quotas.store.get(key)
        if quota is None:
            self._recounts.discard(key)
            return None
        names = tuple(quota.spec.hard or ())
        if plan.asks_for_devices(names) and not await self._monitors.follow_classes():
            return NOT_LISTED_S
        measured, counted = plan.plan_kinds(names, self._monitors.classes)
        listing = await self._monitors.follow(measured | counted)
        if listing and min(listing.values()) < LISTING_S:
            return NOT_LISTED_S
        await self._monitors.fill(measured - listing.keys(), quota.namespace)
        before, quota = quota, self._present(quota)
        if quota is None or quota.spec != before.spec:
            return None  # it was deleted, or its change has queued it again
        self._looked[key] = self._clock.monotonic()
        used = self._read(quota, measured - listing.keys(), counted - listing.keys())
        lowers = key in self._recounts or key in self._uncharged
        if not lowers:
            used = plan.not_less(used, quota.status.used or {}, used)
        if not listing:
            self._recounts.discard(key)  # a recount requested from here on is done by the next sync
        status = plan.status(quota, used)
        if status is None:
            self._counted[key] = Counted(quota.version, self._counted.get(key, Counted(0)).until)
        else:
            self._counted[key] = Counted(inf)  # until the answer has the new version
            self._uncharged.discard(key)  # a charge that the cache does not show yet makes the write conflict
            changes: dict[Path, Value] = {("status", "hard"): status.hard, ("status", "used"): status.used}
            try:
                written = await writes.update(self._client, Update(RESOURCE_QUOTAS, quota, changes, "status"))
            except RequestError as error:
                if lowers:
                    self._recounts.add(key)
                if not isinstance(error, Conflict):
                    raise
                self._overtaken[key] = self._clock.monotonic() + PACE_S
                return 2 * PACE_S
            if key in self._counted:  # it was not deleted meanwhile
                self._counted[key] = Counted(written.version, self._clock.monotonic() + REQUEST_S)
        self._overtaken.pop(key, None)
        return LISTING_S if listing else None

    def _present(self, quota: ResourceQuota) -> ResourceQuota | None:
        """The present version of a quota. The totals of its namespace are dropped if the namespace has no quota any
        more."""
        if not self._quotas.store.count(NAMESPACE, quota.namespace):
            self._monitors.forget(quota.namespace)
        return self._quotas.store.get(quota.key)

    def _read(
        self, quota: ResourceQuota, measured: frozenset[GroupResource], counted: frozenset[GroupResource]
    ) -> dict[str, Quantity]:
        asked, namespace, names = requirements(quota), quota.namespace, quota.spec.hard or {}
        parts: list[tuple[frozenset[str], Amounts]] = []
        for kind in sorted(measured):
            amounts = self._monitors.used(kind, namespace, asked)
            if amounts is not None:
                classes = self._monitors.classes
                parts.append((frozenset(name for name in names if plan.covers(kind, name, classes)), amounts))
        for kind in sorted(counted):
            found = self._monitors.count(kind, namespace)
            if found is not None:
                parts.append((frozenset(plan.counted_names(kind)), plan.count_of(kind, found, scoped=bool(asked))))
        classes = self._monitors.classes
        doubtful = self._monitors.unmeasured(measured, namespace)
        kept = {name for name in names if any(plan.covers(kind, name, classes) for kind in doubtful)}
        return plan.not_less(plan.usage(names, parts), quota.status.used or {}, kept)

    async def replenish(self, key: str) -> None:
        """Queue the quotas in a namespace that limit a kind of which something was released."""
        for quota in self._limiting(key):
            self._uncharged.add(quota.key)
            due = self._looked.get(quota.key, float("-inf")) + PACE_S
            self._queue.add_after(quota.key, due - self._clock.monotonic(), retry=False)

    async def count_appeared(self, key: str) -> None:
        """Queue the quotas whose usage is too low. One that is too high may include objects that are about to
        appear."""
        for quota in self._limiting(key):
            kinds = plan.plan_kinds(quota.spec.hard or (), self._monitors.classes)
            if plan.says_less(quota, self._read(quota, *kinds)):
                self._queue.add(quota.key)

    def _limiting(self, key: str) -> Iterator[ResourceQuota]:
        """The quotas in a namespace that limit a kind."""
        namespace, _, named = key.partition("/")
        plural, _, group = named.partition(".")
        for quota in self._quotas.store.by_index(NAMESPACE, namespace):
            hard = (quota.spec.hard or {}).keys() | (quota.status.hard or {}).keys()  # the status may lag behind
            if any(plan.covers((group, plural), name, self._monitors.classes) for name in hard):
                yield quota

    async def resync(self) -> None:
        """Queue all quotas, and stop watching kinds that none of them limits."""
        self._monitors.keep_asked()
        for quota in self._quotas.store.list():
            self._recount(quota)

    async def refresh(self) -> None:
        """Queue the quotas of kinds that have started or stopped being served. upstream: Sync."""
        try:
            changed = await self._monitors.refresh()
        except RequestError as error:
            log.warning("Discovery failed, will retry", extra={"fields": {"err": str(error)}})
            return
        async for quota in in_turns(self._quotas.store.list() if changed else (), OBJECTS):
            measured, counted = plan.plan_kinds(quota.spec.hard or (), self._monitors.classes)
            if changed & (measured | counted):
                self._recount(quota)

    def _recount(self, quota: ResourceQuota) -> None:
        self._recounts.add(quota.key)
        self._queue.add(quota.key)

    # -- events

    def added(self, quota: ResourceQuota) -> Keys:
        """The key of a quota that can be enforced."""
        self._recounts.add(quota.key)
        return () if plan.is_urgent(quota, self._monitors.classes) else (quota.key,)

    def added_urgent(self, quota: ResourceQuota) -> Keys:
        """The key of a quota that cannot be enforced yet."""
        return () if self.added(quota) else (quota.key,)

    def updated(self, old: ResourceQuota, new: ResourceQuota) -> Keys:
        """The key of a quota whose limits changed. Charges by admission require no recount."""
        due = self._overtaken.get(new.key)
        if due is not None and due <= self._clock.monotonic():
            return (new.key,)  # a write right after a change is the least likely to conflict
        if new.key in self._uncharged and old.status.used != new.status.used:
            self._queue.add_after(new.key, PACE_S, retry=False)  # admission charges an object before it exists
        return self.added(new) if _is_other(old, new) else ()

    def updated_urgent(self, old: ResourceQuota, new: ResourceQuota) -> Keys:
        """The key of a changed quota that cannot be enforced yet."""
        return self.added_urgent(new) if _is_other(old, new) else ()

    def deleted(self, quota: ResourceQuota) -> Keys:
        """Forget the quota; the totals of a namespace are dropped with its last quota. No key is queued."""
        self._looked.pop(quota.key, None)
        self._overtaken.pop(quota.key, None)
        self._uncharged.discard(quota.key)
        self._recounts.discard(quota.key)
        self._counted.pop(quota.key, None)
        if not self._quotas.store.count(NAMESPACE, quota.namespace):
            self._monitors.forget(quota.namespace)
        return ()

    def _freed(self, kind: GroupResource, namespace: str) -> None:
        if self._quotas.store.count(NAMESPACE, namespace):
            self._changes.add(_place(kind, namespace))

    def _appeared(self, kind: GroupResource, obj: Object) -> None:
        """Requeue quotas that were counted without this object and written after admission had charged it."""
        now = self._clock.monotonic()
        for quota in self._quotas.store.by_index(NAMESPACE, obj.namespace):
            counted = self._counted.get(quota.key)
            if counted is not None and (obj.version <= counted.version or now < counted.until):
                self._appearances.add_after(_place(kind, obj.namespace), PACE_S, retry=False)
                return


def _place(kind: GroupResource, namespace: str) -> str:
    """The key of a kind's objects in a namespace."""
    group, plural = kind
    return f"{namespace}/{plural}.{group}"


def _is_other(old: ResourceQuota, new: ResourceQuota) -> bool:
    return old.spec != new.spec or new.status.used is None


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
            failures=Failures(retried="Error processing resource quota work item", key="key"),
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
            failures=Failures(retried="Error processing resource quota work item", key="key"),
            workers=ResourceQuotaConfig,
            writes=(RESOURCE_QUOTAS,),
        ),
        Queue("resource_quota_controller_resource_changes", sync=ResourceQuotaController.replenish),
        Queue("resource_quota_controller_appeared_objects", sync=ResourceQuotaController.count_appeared),
    ),
    passes=(
        Periodic(ResourceQuotaController.resync, pause_s=lambda controller: controller.sync_period_s, delayed=True),
        Periodic(ResourceQuotaController.refresh, pause_s=lambda controller: ABSENT_S, delayed=True),
    ),
)
