"""The controller of ReplicaSets and ReplicationControllers: keeps the number of pods at spec.replicas.

Expected flow of a sync: claim the pods (adopt, release), create missing pods or delete surplus ones, write the status.
While expectations are not met, because the cache does not show earlier writes, only the status is written.

upstream: pkg/controller/replicaset/{replica_set.go,metrics/metrics.go}
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from kcm_cli.api.apps import ReplicaSet
from kcm_cli.api.core import PODS, Pod, ReplicationController
from kcm_cli.api.resource import Resource
from kcm_cli.component.logs import V2
from kcm_cli.component.metrics import exponential_buckets
from kcm_cli.engine import writes
from kcm_cli.engine.claiming import RefManager
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Keys
from kcm_cli.engine.dependents import living_owner
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.labels import Selector
from kcm_cli.planning import pods as pod_rules
from kcm_cli.planning import replicas as rules
from kcm_cli.planning.actions import Delete, Outcome
from kcm_cli.planning.pod_template import UnselectedTemplate
from kcm_cli.planning.replicas import ReplicaOwner, Status
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import namespace_terminating
from kcm_cli.runtime.store import CONTROLLER_UID, Store, by_controller, claimable

log = logging.getLogger(__name__)

T = TypeVar("T", ReplicaSet, ReplicationController)


class ReplicaController(Generic[T]):
    """The controller of one kind. ``selector_of`` raises FormatError for an invalid selector."""

    def __init__(
        self,
        context: ControllerContext,
        resource: Resource[T],
        selector_of: Callable[[T], Selector],
        *,
        reports_terminating: bool = False,
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._resource: Resource[T] = resource
        self._selector_of: Callable[[T], Selector] = selector_of
        self._reports_terminating = reports_terminating
        self._counts_costs = context.gates.enabled("PodDeletionCost")
        self._expectations = context.expectations
        self._executor = context.executor()
        self._refs = RefManager(self._executor, resource, PODS)
        self._owners: Store[T] = context.cache(resource).store
        self._pods = context.cache(PODS).store
        self._pods.add_index(CONTROLLER_UID, by_controller)
        self._deletion_ages = context.metrics.histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Age of the ready pods chosen for deletion, relative to the youngest ready pod.",
            exponential_buckets(0.25, 2, 6),
        ).labels()

    async def sync(self, key: str) -> float | None:
        obj = self._owners.get(key)
        if obj is None:
            self._expectations.forget(key)
            return None
        try:
            owner = ReplicaOwner.of(self._resource, obj, self._selector_of(obj))
        except FormatError as problem:
            fields = {"resource": str(self._resource), "key": key, "err": str(problem)}
            log.error("The selector cannot be used", extra={"fields": fields})
            return None  # retrying would not help
        may_plan = self._expectations.satisfied(key, self._clock.monotonic(), obj.uid)
        pods = claimable(self._pods, obj)
        candidates = pod_rules.active(pods)
        claimed = await self._refs.claim(obj, owner.selector, candidates)
        active = claimed.members
        ended: Sequence[Pod] = pods if len(candidates) < len(pods) else ()
        terminating = self._terminating(owner, ended)
        now, missing = self._clock.now(), owner.replicas - len(active)
        pause_s = rules.pause_s(owner, active, ended, missing, now) if missing > 0 else 0.0
        may_plan = may_plan and claimed.error is None and not obj.deleting and not pause_s
        error = await self._scale(obj, owner, active) if may_plan else None
        now = self._clock.now()
        status = rules.status(owner, active, terminating, error, now, observed=claimed.error is None)
        await self._write_status(obj, owner.status, status)
        if (failure := error or claimed.error) is not None:
            raise failure
        check_s = rules.next_check_s(owner, status, active, now)
        return min((seconds for seconds in (check_s, pause_s) if seconds), default=None)

    async def _scale(self, obj: T, owner: ReplicaOwner, active: list[Pod]) -> Exception | None:
        related = self.related(obj) if len(active) > owner.replicas else []
        now = self._clock.now()
        try:
            planned = rules.plan(owner, active, related, now, costs=self._counts_costs)
        except UnselectedTemplate as unselected:
            return unselected
        if not planned:
            return None
        for ratio in rules.age_ratios(active, planned, now):
            self._deletion_ages.observe(ratio)
        outcome = await self._executor.run(planned)
        self._log_failures(obj, outcome)
        error = outcome.error
        # In a terminating namespace nothing can be created: this is no error.
        return None if error is None or namespace_terminating(error) else error

    def _log_failures(self, obj: T, outcome: Outcome) -> None:
        fields: dict[str, object] = {"kind": self._resource.kind, "replicaSet": kobj(obj)}
        if outcome.skipped:
            text = "Slow-start failure. Skipping creation of pods, decrementing expectations"
            log.log(V2, text, extra={"fields": {"podsSkipped": len(outcome.skipped), **fields}})
        for failure in outcome.failed:
            if isinstance(failure.action, Delete):
                pod = f"{failure.action.namespace}/{failure.action.name}"
                text = "Failed to delete pod, decremented expectations"
                log.log(V2, text, extra={"fields": {"pod": pod, **fields}})

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
            and living_owner(self._resource.kind, self._owners, pod) is not None
            and owner.selector.matches(pod.labels)
            for pod in pods
        )

    def related(self, obj: T) -> list[Pod]:
        """The pods that are counted by node when pods are chosen for deletion."""
        return []

    # -- events

    def deleted(self, obj: T) -> Keys:
        """Forget the owner's expectations, and queue its key."""
        self._expectations.forget(obj.key)
        return (obj.key,)
