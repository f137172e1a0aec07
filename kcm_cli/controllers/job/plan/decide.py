"""Decides about a Job's pods in one sync: delete all when the Job ends, delete surplus pods, create missing ones.

A sync either creates or deletes pods; deletions go first.

upstream: pkg/controller/job/job_controller.go#manageJob, deleteActivePods
"""

from collections.abc import Iterable
from datetime import datetime
from enum import Enum

import msgspec

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.api.core import PODS, Condition, Pod
from kcm_cli.controllers.job.backoff import finished_at
from kcm_cli.controllers.job.plan import spec
from kcm_cli.controllers.job.plan.conditions import ending
from kcm_cli.controllers.job.plan.creation import creations
from kcm_cli.controllers.job.plan.pods import JobPod, failure_counts, has_finalizer, surplus
from kcm_cli.controllers.job.plan.state import JobState, Snapshot, state_of
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Create, Delete, Patch, ref_to
from kcm_cli.planning.pod_control import delete_pod

_MOST_DOUBLINGS = 10


class SyncAction(Enum):
    """The action of a sync, as metrics show it."""

    RECONCILING = "reconciling"
    TRACKING = "tracking"
    PODS_CREATED = "pods_created"
    PODS_DELETED = "pods_deleted"


class Management(msgspec.Struct, frozen=True):
    """The decision of one sync.

    ending: the condition that ends the Job (see ``conditions.ending``). managed: the Job goes on, and the cache was up
    to date enough to decide about its pods. finalizers: patches that remove finalizers before the deletions, so that
    these pods are not counted. wait_s: seconds until missing pods may be created.
    """

    state: JobState
    ending: Condition | None = None
    action: SyncAction = SyncAction.RECONCILING
    managed: bool = False
    finalizers: tuple[Patch, ...] = ()
    deletions: tuple[Delete, ...] = ()
    creations: tuple[Create, ...] = ()
    wait_s: float | None = None

    @property
    def again_s(self) -> float | None:
        """Seconds until the key is requeued: for the Job's deadline, or when missing pods may be created."""
        deadline_s = None if self.ending is not None else self.state.deadline_s
        return min((delay for delay in (deadline_s, self.wait_s) if delay is not None), default=None)


def plan(snapshot: Snapshot, now: datetime) -> Management:
    """Decide whether the Job ends, and which pods to create or delete."""
    state = state_of(snapshot, now)
    over = ending(state, now)
    job = snapshot.job
    if over is not None:
        return Management(state, over, deletions=_deletions(job, state.active, f"job ends: {over.reason or over.type}"))
    if not snapshot.satisfied or job.deleting:
        return Management(state)
    if spec.is_suspended(job):
        return _removal(state, state.active, "job is suspended")
    wanted = _wanted(state)
    active = len(state.active)
    going = surplus(state.active, max(0, active - wanted), indexed=spec.is_indexed(job))
    if going:
        return _removal(state, going[: spec.MAX_PODS_PER_SYNC], "too many active pods")
    waits = state.terminating if spec.replaces_only_failed(job, snapshot.features) else 0
    missing = wanted - waits - active
    if missing > 0:
        return _addition(state, missing, now)
    return Management(state, action=SyncAction.TRACKING, managed=True)


def remove_finalizer(pod: Pod) -> Patch:
    """A patch that removes the tracking finalizer from a pod that is counted."""
    return _without_finalizer(pod, {"uid": pod.uid})


def give_up(pod: Pod) -> Patch:
    """A patch that removes the tracking finalizer from a pod that is not to be counted. It is refused if the pod has
    changed meanwhile: it may have ended, or belong to a Job again."""
    return _without_finalizer(pod, {"uid": pod.uid, "resourceVersion": pod.metadata.resource_version})


def _without_finalizer(pod: Pod, precondition: Doc) -> Patch:
    metadata = {**precondition, "$deleteFromPrimitiveList/finalizers": [spec.TRACKING_FINALIZER]}
    return Patch(PODS, pod.namespace, pod.name, {"metadata": metadata}, reason="tracking finalizer removed")


def _wanted(state: JobState) -> int:
    """The number of pods that should be active. A work queue with a success starts no more pods."""
    job = state.job
    if job.spec.completions is None:
        return len(state.active) if state.succeeded > 0 else spec.parallelism(job)
    return max(0, min(job.spec.completions - state.succeeded, spec.parallelism(job)))


def _removal(state: JobState, going: Iterable[JobPod], reason: str) -> Management:
    chosen = tuple(going)
    finalizers = tuple(give_up(job_pod.pod) for job_pod in chosen if has_finalizer(job_pod.pod))
    deletions = _deletions(state.job, chosen, reason)
    return Management(state, action=SyncAction.PODS_DELETED, managed=True, finalizers=finalizers, deletions=deletions)


def _deletions(job: Job, going: Iterable[JobPod], reason: str) -> tuple[Delete, ...]:
    ref = ref_to(JOBS, job)
    return tuple(delete_pod(ref, job_pod.pod, reason) for job_pod in going)


def _addition(state: JobState, missing: int, now: datetime) -> Management:
    job = state.job
    per_index = spec.counts_per_index(job)
    wait_s = 0.0 if per_index else remaining_s(state.backoff.failures, state.backoff.last_failure, now)
    count = min(missing, spec.MAX_PODS_PER_SYNC)
    indexes = _pending(state, count) if spec.is_indexed(job) and wait_s <= 0 else None
    if indexes is not None and per_index:
        indexes, wait_s = _due(state, indexes, now)
    if wait_s > 0:
        return Management(state, action=SyncAction.PODS_CREATED, managed=True, wait_s=max(wait_s, spec.BATCH_PERIOD_S))
    return Management(state, action=SyncAction.PODS_CREATED, managed=True, creations=creations(state, count, indexes))


def _pending(state: JobState, count: int) -> list[int]:
    """The lowest indexes that have neither succeeded nor failed and have no pod."""
    job = state.job
    waits = spec.replaces_only_failed(job, state.snapshot.features)
    busy = {
        job_pod.index
        for job_pod in state.pods
        if job_pod.index >= 0 and (job_pod.active or (waits and _ending(job_pod)))
    }
    taken = state.succeeded_indexes.with_indexes(busy)
    if state.failed_indexes is not None:
        taken = taken.union(state.failed_indexes)
    return taken.first_missing(count, spec.completions(job))


def _ending(job_pod: JobPod) -> bool:
    return job_pod.pod.deleting and job_pod.pod.status.phase not in ("Succeeded", "Failed")


def _due(state: JobState, indexes: list[int], now: datetime) -> tuple[list[int], float]:
    """The indexes that may be retried now, and the shortest wait in seconds if there are none."""
    due: list[int] = []
    shortest: float | None = None
    for index in indexes:
        failed = state.delayed.get(index)
        wait_s = 0.0 if failed is None else _index_wait_s(failed, now)
        if wait_s <= 0:
            due.append(index)
        elif shortest is None or wait_s < shortest:
            shortest = wait_s
    return due, 0.0 if due or shortest is None else shortest


def _index_wait_s(failed: JobPod, now: datetime) -> float:
    return remaining_s(sum(failure_counts(failed.pod)) + 1, finished_at(failed.pod), now)


def remaining_s(failures: int, last_failure: datetime | None, now: datetime) -> float:
    """The seconds that are left of the delay after this number of failures. upstream: getRemainingTime."""
    if failures == 0 or last_failure is None:
        return 0.0
    doubled = 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
    delay_s = min(spec.POD_BACKOFF_S * doubled, spec.MAX_POD_BACKOFF_S)
    return max(0.0, delay_s - (now - last_failure).total_seconds())
