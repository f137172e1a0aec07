"""disruption-controller: computes how many pods of each PodDisruptionBudget may be evicted; the API server enforces it.

upstream: pkg/controller/disruption
"""

import logging
import math
from contextlib import suppress

from msgspec.structs import replace

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS, PodDisruptionBudget, PodDisruptionBudgetStatus
from kcm_cli.component.logs import V1, V2
from kcm_cli.controllers.disruption import plan
from kcm_cli.controllers.disruption.plan import Snapshot
from kcm_cli.controllers.disruption.scales import SCALED, Scales, ScaleUnknown
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Controller, Keys, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import Failures, unhandled
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import kobj, kref
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.planning.actions import Notice, Update, ref_to
from kcm_cli.planning.pod_status import status_patch
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import (
    Conflict,
    InternalError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from kcm_cli.rest.mapper import NoMatch
from kcm_cli.rest.transport import RequestError, TransportError
from kcm_cli.runtime.label_indexes import LabelIndex, SelectorIndex

log = logging.getLogger(__name__)

_FAILURES = (ScaleUnknown, NoMatch, ValueError, RequestError)
_PASSING = (TransportError, InternalError, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests)
"""Transient failures: retried, since no event will requeue the key."""
_ALWAYS = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
MANY, REST_PER_POD_S = 1000, 0.00001
"""A budget of so many pods is synced again after so long for each, a few times as long as the sync takes. Each change
of a pod queues it: without a rest, a rollout of 20,000 pods would do nothing else."""


class DisruptionController:
    """Keys are budgets, and pods in the queue of stale conditions."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock, self._client = context.clock, context.client
        self._recorder = context.recorder
        self._tracks_generation = context.gates.enabled("PodObservedGenerationTracking")
        self._queue, self._recheck_queue, _ = context.queues
        self._budgets = context.cache(POD_DISRUPTION_BUDGETS)
        self._pods = context.cache(PODS)
        self._scales = Scales(context)
        self._rests: dict[str, float] = {}
        """Until when budgets of many pods rest."""

    async def sync(self, key: str) -> float | None:
        budget = self._budgets.store.get(key)
        if budget is None:
            self._rests.pop(key, None)
            return None
        left = self._rests.get(key, -math.inf) - self._clock.monotonic()
        if left > 0:
            return left
        try:
            await self._update(await self._read(budget))
        except Conflict:
            raise
        except _FAILURES as error:  # no eviction while it is not known how many would be too many
            fields = {"podDisruptionBudget": kref(key), "err": str(error)}
            log.error("Failed to sync PDB", extra={"fields": fields})
            await self._write(budget, plan.failed_status(budget, str(error), self._clock.now()))
            if isinstance(error, _PASSING):
                raise
        return None

    async def recheck(self, key: str) -> None:
        """Sync a budget again, since granted evictions have timed out or their pods were deleted."""
        self._queue.add(key)

    async def _read(self, budget: PodDisruptionBudget) -> Snapshot:
        """The budget with its pods and their scale. Raises one of _FAILURES, after an Event about it."""
        try:
            selector = _selector(budget)
        except FormatError as error:
            self._emit(budget, "Warning", "NoPods", f"Failed to get pods: {error}")
            raise
        await LabelIndex.of(self._pods.store).prepare(budget.namespace, selector)
        pods = tuple(LabelIndex.of(self._pods.store).selected(budget.namespace, selector))
        if len(pods) >= MANY:
            self._rests[budget.key] = self._clock.monotonic() + len(pods) * REST_PER_POD_S
        if not pods:
            self._emit(budget, "Normal", "NoPods", "No matching pods found")
        try:
            snapshot = Snapshot(budget, pods)
            if plan.depends_on_scale(budget):
                snapshot = Snapshot(budget, pods, *await self._scales.total(pods))
            plan.expected(snapshot)  # a percentage that cannot be read fails here, before anything is written
        except _FAILURES as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            self._emit(budget, "Warning", "CalculateExpectedPodCountFailed", text)
            raise
        if snapshot.unmanaged:
            self._emit(budget, "Warning", "UnmanagedPods", plan.unmanaged_text(budget.spec.selector))
        return snapshot

    async def _update(self, snapshot: Snapshot) -> None:
        budget, now = snapshot.budget, self._clock.now()
        evictions = plan.plan(snapshot, now)
        for pod in evictions.overdue:
            fields = {
                "pod": kobj(pod),
                "deletionTime": (budget.status.disrupted_pods or {}).get(pod.name, ""),
                "podDisruptionBudget": kobj(budget),
            }
            log.log(V1, "pod was expected to be deleted but it wasn't, updating PDB", extra={"fields": fields})
            text = f"Pod was expected by PDB {budget.key} to be deleted but it wasn't"
            self._recorder.emit(Notice(ref_to(PODS, pod), "Warning", "NotDeleted", text))
        await self._write(budget, plan.status(snapshot, evictions.pending, now))
        if evictions.recheck_s is not None:
            self._recheck_queue.add_after(budget.key, evictions.recheck_s)

    async def _write(self, budget: PodDisruptionBudget, new: PodDisruptionBudgetStatus) -> None:
        if new != budget.status:
            changes = status_changes(new, always=_ALWAYS)
            await writes.send(self._client, Update(POD_DISRUPTION_BUDGETS, budget, changes, "status"))

    async def sync_stale(self, key: str) -> float | None:
        """Set a stale DisruptionTarget condition to False. A pod that has changed meanwhile is looked at again: it may
        have been chosen anew."""
        pod = self._pods.store.get(key)
        wait = plan.stale_in_s(pod, self._clock.now()) if pod is not None else None
        if pod is None or wait is None or wait > 0:
            return wait
        condition = {"type": plan.DISRUPTION_TARGET, "status": "False", "reason": "", "message": ""}
        patch = status_patch(
            pod, dict(condition), self._clock.now(), tracks_generation=self._tracks_generation, unchanged=True
        )
        if patch is not None:
            with suppress(NotFound):
                await writes.send(self._client, replace(patch, reason="stale DisruptionTarget condition"))
                text = "Reset stale DisruptionTarget condition to False"
                log.log(V2, text, extra={"fields": {"pod": kobj(pod)}})
        return None

    # -- events

    def with_stale_condition(self, pod: Pod) -> Keys:
        """The pod's key, at the time when its DisruptionTarget condition becomes stale."""
        wait = plan.stale_in_s(pod, self._clock.now())
        return () if wait is None else (After(pod.key, wait),)

    def budgets_of_changed(self, old: Pod, new: Pod) -> Keys:
        """The keys of the budgets that a change of a pod may matter to, also of those that no longer select it.

        Upstream queues the pod's budget at each change. Budgets count pods by status, deletion, controller and labels:
        if nothing but labels and other metadata changes, only budgets that select one of the two versions are queued.
        A resync, which passes the same object twice, queues all.
        """
        if old is new or not plan.counts_alike(old, new):
            return (*self.budgets_of(new), *(self._selecting(old) - self._selecting(new)))
        return tuple(self._selecting(old) ^ self._selecting(new)) if old.labels != new.labels else ()

    def _selecting(self, pod: Pod) -> frozenset[str]:
        found = SelectorIndex.of(self._budgets.store, _selector).selecting(pod.namespace, pod.labels)
        return frozenset(budget.key for budget in found)

    def budgets_of(self, pod: Pod) -> Keys:
        """The keys of the pod's budgets. The Event about several names the first."""
        selecting = SelectorIndex.of(self._budgets.store, _selector).selecting(pod.namespace, pod.labels)
        found = sorted(selecting, key=lambda budget: budget.name)
        if len(found) > 1:
            text = (
                f'Pod "{pod.namespace}"/"{pod.name}" matches multiple PodDisruptionBudgets.  '
                f'Chose "{found[0].name}" arbitrarily.'
            )
            self._recorder.emit(Notice(ref_to(PODS, pod), "Warning", "MultiplePodDisruptionBudgets", text))
        return tuple(budget.key for budget in found)

    def _emit(self, budget: PodDisruptionBudget, type_: str, reason: str, message: str) -> None:
        self._recorder.emit(Notice(ref_to(POD_DISRUPTION_BUDGETS, budget), type_, reason, message))


def _selector(budget: PodDisruptionBudget) -> Selector:
    """Raises FormatError."""
    return from_label_selector(budget.spec.selector)


CONTROLLER = Controller(
    DisruptionController,
    (
        Queue(
            "disruption",
            Watch(POD_DISRUPTION_BUDGETS, own_key),
            watches=(Watch(PODS, DisruptionController.budgets_of, updated=DisruptionController.budgets_of_changed),),
            sync=DisruptionController.sync,
            failures=Failures(retried="Error syncing PodDisruptionBudget, requeuing", key="key"),
            writes=(POD_DISRUPTION_BUDGETS,),
        ),
        Queue("disruption_recheck", sync=DisruptionController.recheck),
        Queue(
            "stale_pod_disruption",
            Watch(PODS, changed=DisruptionController.with_stale_condition),
            sync=DisruptionController.sync_stale,
            failures=unhandled("error syncing Pod {key} to clear DisruptionTarget condition, requeueing: {error}"),
        ),
    ),
    reads=SCALED,
    announces=starting("disruption controller"),
)
