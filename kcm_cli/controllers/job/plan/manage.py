"""What is done about a Job's pods in one sync: all deleted, the surplus deleted, or the missing created.

Never creations and deletions at once: deletions go first.

upstream: pkg/controller/job/job_controller.go#manageJob, deleteActivePods
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.api.core import PODS, Pod
from kcm_cli.controllers.job.plan import names, spec
from kcm_cli.controllers.job.plan.assess import Assessment
from kcm_cli.controllers.job.plan.backoff import finished_at, remaining_s
from kcm_cli.controllers.job.plan.creation import creations
from kcm_cli.controllers.job.plan.facts import Facts, failure_counts, has_finalizer
from kcm_cli.controllers.job.plan.ranking import surplus
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Create, Delete, Patch, ref_to
from kcm_cli.planning.pod_control import delete_pod


class Step(Enum):
    """What a sync did about pods, as metrics name it."""

    RECONCILING = "reconciling"
    TRACKING = "tracking"
    PODS_CREATED = "pods_created"
    PODS_DELETED = "pods_deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is done about pods.

    managed: the Job goes on, and the cache was good enough to decide about its pods. finalizers: to be removed
    before the deletions, so that these pods are not counted. wait_s: pods are missing, and may be created only after
    so many seconds.
    """

    step: Step = Step.RECONCILING
    managed: bool = False
    finalizers: tuple[Patch, ...] = ()
    deletions: tuple[Delete, ...] = ()
    creations: tuple[Create, ...] = ()
    wait_s: float | None = None


def manage(assessment: Assessment, now: datetime) -> Work:
    """Decide about the pods of a Job."""
    job = assessment.job
    if assessment.verdict is not None:
        return Work(deletions=_deletions(job, assessment.active))
    if not assessment.snapshot.satisfied or job.deleting:
        return Work()
    if spec.is_suspended(job):
        return _removal(job, assessment.active)
    wanted = _wanted(assessment)
    active = len(assessment.active)
    going = surplus(assessment.active, max(0, active - wanted), indexed=spec.is_indexed(job))
    if going:
        return _removal(job, going[: names.MAX_PODS_PER_SYNC])
    only_failed = spec.replaces_only_failed(job, assessment.snapshot.features)
    ending = assessment.terminating if only_failed else 0
    missing = wanted - ending - active
    if missing > 0:
        return _addition(assessment, missing, now)
    return Work(step=Step.TRACKING, managed=True)


def remove_finalizer(pod: Pod) -> Patch:
    """The pod is counted, or not to be: it may go."""
    metadata: Doc = {"uid": pod.uid, "$deleteFromPrimitiveList/finalizers": [names.TRACKING_FINALIZER]}
    return Patch(PODS, pod.namespace, pod.name, {"metadata": metadata})


def _wanted(assessment: Assessment) -> int:
    """How many pods should be active. A work queue that has had a success starts no more."""
    job = assessment.job
    if job.spec.completions is None:
        return len(assessment.active) if assessment.succeeded > 0 else spec.parallelism(job)
    return max(0, min(job.spec.completions - assessment.succeeded, spec.parallelism(job)))


def _removal(job: Job, going: Iterable[Facts]) -> Work:
    chosen = tuple(going)
    finalizers = tuple(remove_finalizer(fact.pod) for fact in chosen if has_finalizer(fact.pod))
    return Work(step=Step.PODS_DELETED, managed=True, finalizers=finalizers, deletions=_deletions(job, chosen))


def _deletions(job: Job, going: Iterable[Facts]) -> tuple[Delete, ...]:
    ref = ref_to(JOBS, job)
    return tuple(delete_pod(ref, fact.pod) for fact in going)


def _addition(assessment: Assessment, missing: int, now: datetime) -> Work:
    job = assessment.job
    per_index = spec.counts_per_index(job)
    wait_s = 0.0 if per_index else assessment.backoff.remaining_s(now)
    count = min(missing, names.MAX_PODS_PER_SYNC)
    indexes = _pending(assessment, count) if spec.is_indexed(job) and wait_s <= 0 else None
    if indexes is not None and per_index:
        indexes, wait_s = _due(assessment, indexes, now)
    if wait_s > 0:
        return Work(step=Step.PODS_CREATED, managed=True, wait_s=max(wait_s, names.BATCH_PERIOD_S))
    return Work(step=Step.PODS_CREATED, managed=True, creations=creations(assessment, count, indexes))


def _pending(assessment: Assessment, count: int) -> list[int]:
    """The lowest indexes that are neither done nor failed nor worked on."""
    job = assessment.job
    waits = spec.replaces_only_failed(job, assessment.snapshot.features)
    busy = {fact.index for fact in assessment.facts if fact.index >= 0 and (fact.active or (waits and _ending(fact)))}
    taken = assessment.succeeded_indexes.with_indexes(busy)
    if assessment.failed_indexes is not None:
        taken = taken.union(assessment.failed_indexes)
    return taken.first_missing(count, spec.completions(job))


def _ending(fact: Facts) -> bool:
    return fact.pod.deleting and fact.pod.status.phase not in ("Succeeded", "Failed")


def _due(assessment: Assessment, indexes: list[int], now: datetime) -> tuple[list[int], float]:
    """The indexes that may be tried again now; if none may, the shortest time to wait."""
    due: list[int] = []
    shortest: float | None = None
    for index in indexes:
        failed = assessment.delayed.get(index)
        wait_s = 0.0 if failed is None else _index_wait_s(failed, now)
        if wait_s <= 0:
            due.append(index)
        elif shortest is None or wait_s < shortest:
            shortest = wait_s
    return due, 0.0 if due or shortest is None else shortest


def _index_wait_s(failed: Facts, now: datetime) -> float:
    return remaining_s(sum(failure_counts(failed.pod)) + 1, finished_at(failed.pod), now)
