"""The controller behind ReplicaSets and ReplicationControllers: keep as many pods as asked for.

Expected flow of a sync: claim the pods (adopt, release), create or delete what is off by, write the status. While
the cache lags behind our own writes (expectations), only the status is written.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.resource import Resource
from kcm_cli.component.metrics import Registry, exponential_buckets
from kcm_cli.engine import writes
from kcm_cli.engine.claiming import claim
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Keys
from kcm_cli.engine.dependents import living_owner
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object
from kcm_cli.planning import pods as pod_rules
from kcm_cli.planning import replicas as rules
from kcm_cli.planning.replicas import ReplicaOwner, Status
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import namespace_terminating
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller, claimable


class DeletionAges:
    """replicaset_controller_sorting_deletion_age_ratio, of ReplicaSets and ReplicationControllers."""

    def __init__(self, registry: Registry) -> None:
        self._ages = registry.histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Age of the ready pods chosen for deletion, relative to the youngest ready pod.",
            exponential_buckets(0.25, 2, 6),
        ).labels()

    def chosen(self, ratios: Iterable[int]) -> None:
        """Ready pods were chosen for deletion."""
        for ratio in ratios:
            self._ages.observe(ratio)


log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class Observers:
    """What a kind of replica owner reports to its metrics.

    skipped: a sync was put off, since the cache of this group and resource is behind. chosen: ready pods are going to
    be deleted, with their ages in those of the youngest.
    """

    skipped: Callable[[str, str], None] | None = None
    chosen: Callable[[Iterable[int]], None] | None = None


class ReplicaController(Generic[T]):
    """One kind of replica owner. ``related`` finds the pods that count for spreading when scaling down."""

    def __init__(
        self,
        context: ControllerContext,
        resource: Resource[T],
        owner_of: Callable[[T], ReplicaOwner],
        *,
        reports_terminating: bool = False,
        related: Callable[[T], list[Pod]] | None = None,
        observers: Observers | None = None,
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._resource = resource
        self._owner_of = owner_of
        self._reports_terminating = reports_terminating
        self._counts_costs = context.gates.enabled("PodDeletionCost")
        self._related = related
        self._observers = observers or Observers()
        self._expectations = context.expectations
        self._executor = context.executor()
        self._owners = context.cache(resource)
        self._pods = context.cache(PODS)
        self._pods.store.add_index(CONTROLLER_UID, by_controller)

    async def sync(self, key: str) -> float | None:
        obj = self._owners.store.get(key)
        if obj is None:
            self._expectations.forget(key)
            return None
        try:
            owner = self._owner_of(obj)
        except FormatError as problem:
            fields = {"resource": str(self._resource), "key": key, "err": str(problem)}
            log.error("The selector cannot be used", extra={"fields": fields})
            return None  # it does not get better by trying again
        may_plan = self._expectations.satisfied(key, self._clock.monotonic())
        pods = claimable(self._pods.store, obj)
        active = await claim(
            self._executor,
            self._context.client,
            owner.resource,
            obj,
            owner.selector,
            [pod for pod in pods if pod_rules.is_active(pod)],
            PODS,
        )
        terminating = self._terminating(owner, pods)
        error = await self._manage(key, owner, active) if may_plan and not obj.deleting else None
        now = self._clock.now()
        status = rules.new_status(owner, active, terminating, error, now)
        await self._write_status(obj, owner.status, status)
        if error is not None:
            raise error
        return rules.next_check_s(owner, status, active, now)

    async def _manage(self, key: str, owner: ReplicaOwner, active: list[Pod]) -> Exception | None:
        obj = owner.obj
        related: list[Pod] = []
        if len(active) > owner.replicas and self._related is not None:
            known = self._owners.store.get(obj.key)
            related = self._related(known) if known is not None else []
        now = self._clock.now()
        stage = rules.manage(owner, active, related, now, costs=self._counts_costs)
        if stage is None:
            return None
        if self._observers.chosen is not None:
            self._observers.chosen(rules.age_ratios(active, stage, now))
        outcome = await self._executor.stage(stage)
        error = outcome.error
        # A namespace that goes away takes no more pods: nothing to do, nothing to report.
        return None if error is None or namespace_terminating(error) else error

    async def _write_status(self, obj: T, old: Status, new: Status) -> None:
        """Write the status if it differs."""
        if old == new:
            return
        changes = status_changes(new, always=("replicas",))
        await writes.put_status(self._context.client, self._resource, obj, changes)

    def _terminating(self, owner: ReplicaOwner, pods: Iterable[Pod]) -> int | None:
        if not self._reports_terminating:
            return None
        return sum(
            pod_rules.is_terminating(pod)
            and living_owner(self._resource.kind, self._owners.store, pod) is not None
            and owner.selector.matches(pod.labels)
            for pod in pods
        )

    def skipped(self, group: str, resource: str) -> None:
        """A sync was put off, since the cache of this resource is behind."""
        if self._observers.skipped is not None:
            self._observers.skipped(group, resource)

    # -- events

    def deleted(self, obj: T) -> Keys:
        """The owner, of whose expectations nothing is left."""
        self._expectations.forget(obj.key)
        return (obj.key,)

    def pod_updated(self, obj: T, old: Pod, new: Pod) -> Keys:
        """The owner of a pod that has become ready, when the pod becomes available."""
        if not pod_rules.is_ready(new) or pod_rules.is_ready(old):
            return ()
        try:
            delay_s = self._owner_of(obj).min_ready_s
        except FormatError:
            return ()
        return (After(obj.key, delay_s),) if delay_s > 0 else ()
