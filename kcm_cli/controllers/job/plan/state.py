"""Counts the pods and indexes of a Job.

upstream: pkg/controller/job/job_controller.go#syncJob, up to the management of pods
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.batch import Job, JobStatus, Uncounted
from kcm_cli.controllers.job.backoff import FRESH, Backoff, finished_at
from kcm_cli.controllers.job.plan import policies, spec
from kcm_cli.controllers.job.plan.indexes import NONE, Indexes, parse
from kcm_cli.controllers.job.plan.pods import JobPod, failure_counts
from kcm_cli.machinery.times import format_time, parse_time

NO_UNCOUNTED = Uncounted()


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A Job, the pods that it controls (``job_pods_of``), and its backoff record.

    satisfied: the cache shows all pods that earlier syncs created or deleted. pod_group: the PodGroup that new pods
    join.
    """

    job: Job
    pods: tuple[JobPod, ...] = ()
    satisfied: bool = True
    backoff: Backoff = FRESH
    features: spec.Features = spec.ALL
    pod_group: str | None = None


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """A Job at the start of a sync. upstream: syncJobCtx.

    status: the present status, with startTime and uncountedTerminatedPods set. succeeded and failed: the status's
    counters plus pods that are not counted yet. succeeded_before: the completed indexes of the status. delayed: by
    index, the failed pod that keeps its finalizer until its replacement exists, because its annotations hold the number
    of failures. running_s: seconds since the Job started.
    """

    snapshot: Snapshot
    status: JobStatus
    active: tuple[JobPod, ...]
    ready: int
    terminating: int
    succeeded: int
    failed: int
    succeeded_before: Indexes
    succeeded_indexes: Indexes
    failed_indexes: Indexes | None
    delayed: Mapping[int, JobPod]
    backoff: Backoff
    running_s: float | None

    @property
    def job(self) -> Job:
        return self.snapshot.job

    @property
    def pods(self) -> tuple[JobPod, ...]:
        return self.snapshot.pods

    @property
    def uncounted(self) -> Uncounted:
        return self.status.uncounted_terminated_pods or NO_UNCOUNTED

    @property
    def deadline_s(self) -> float | None:
        """Seconds until activeDeadlineSeconds have passed; None if it is not set or the Job is suspended."""
        deadline = self.job.spec.active_deadline_seconds
        if deadline is None or self.running_s is None or spec.is_suspended(self.job):
            return None
        return deadline - self.running_s


def state_of(snapshot: Snapshot, now: datetime) -> JobState:
    """Count the pods."""
    job, job_pods = snapshot.job, snapshot.pods
    active = tuple(job_pod for job_pod in job_pods if job_pod.active)
    status = _started(job, now)
    uncounted = status.uncounted_terminated_pods or NO_UNCOUNTED
    succeeded, failed = _newly_ended(job_pods, uncounted)
    counting = [job_pod for job_pod in failed if _counts(job, job_pod)]
    before, succeeded_indexes, failed_indexes = _indexes(job, job_pods)
    indexed = spec.is_indexed(job)
    return JobState(
        snapshot=snapshot,
        status=status,
        active=active,
        ready=sum(job_pod.ready for job_pod in active),
        terminating=sum(job_pod.terminating for job_pod in job_pods),
        succeeded=succeeded_indexes.total if indexed else status.succeeded + len(succeeded) + len(uncounted.succeeded),
        failed=status.failed + len(counting) + len(uncounted.failed),
        succeeded_before=before,
        succeeded_indexes=succeeded_indexes,
        failed_indexes=failed_indexes,
        delayed={} if failed_indexes is None else _delayed(job_pods, active, succeeded_indexes, failed_indexes),
        backoff=snapshot.backoff.after([job_pod.pod for job_pod in succeeded], [job_pod.pod for job_pod in failed]),
        running_s=None if status.start_time is None else (now - parse_time(status.start_time)).total_seconds(),
    )


def _started(job: Job, now: datetime) -> JobStatus:
    """The status with uncountedTerminatedPods, and with startTime unless the Job is suspended."""
    status = job.status
    start = status.start_time
    if start is None and not spec.is_suspended(job):
        start = format_time(now)
    return msgspec.structs.replace(with_uncounted(status), start_time=start)


def with_uncounted(status: JobStatus) -> JobStatus:
    """The status with uncountedTerminatedPods, empty if it was absent."""
    return msgspec.structs.replace(status, uncounted_terminated_pods=status.uncounted_terminated_pods or NO_UNCOUNTED)


def _newly_ended(job_pods: Sequence[JobPod], uncounted: Uncounted) -> tuple[list[JobPod], list[JobPod]]:
    """The pods that succeeded and those that failed, as far as they are neither counted nor in
    uncountedTerminatedPods: whatever a pod does later, it counts as it was noted first."""
    noted = {*uncounted.succeeded, *uncounted.failed}
    new = [f for f in job_pods if (f.succeeded or f.failed) and f.tracked and f.valid and f.pod.uid not in noted]
    return [f for f in new if f.succeeded], [f for f in new if f.failed]


def _counts(job: Job, job_pod: JobPod) -> bool:
    return policies.match(job.spec.pod_failure_policy, job_pod.pod).counts


def _indexes(job: Job, job_pods: Sequence[JobPod]) -> tuple[Indexes, Indexes, Indexes | None]:
    """The completed indexes of the status, those with new successes, and the failed ones (None without
    backoffLimitPerIndex).

    No index is in both: an API server refuses each status from then on. A pod that is being deleted fails its index,
    and may succeed before its finalizer is removed. What was recorded first counts, and a success before a failure.
    """
    if not spec.is_indexed(job):
        return NONE, NONE, None
    completions = spec.completions(job)
    waiting = [job_pod for job_pod in job_pods if job_pod.tracked and job_pod.valid]
    before = parse(job.status.completed_indexes, completions)
    lost = parse(job.status.failed_indexes or "", completions) if spec.counts_per_index(job) else NONE
    won = (job_pod.index for job_pod in waiting if job_pod.succeeded)
    succeeded = before.with_indexes({index for index in won if index not in lost})
    if not spec.counts_per_index(job):
        return before, succeeded, None
    failing = {job_pod.index for job_pod in waiting if job_pod.index not in succeeded and _index_failed(job, job_pod)}
    return before, succeeded, lost.with_indexes(failing)


def _index_failed(job: Job, job_pod: JobPod) -> bool:
    if not job_pod.failed:
        return False
    match = policies.match(job.spec.pod_failure_policy, job_pod.pod)
    if match.action == spec.FAIL_INDEX:
        return True
    return match.counts and failure_counts(job_pod.pod)[0] >= (job.spec.backoff_limit_per_index or 0)


def _delayed(
    job_pods: Sequence[JobPod], active: Sequence[JobPod], succeeded: Indexes, failed: Indexes
) -> Mapping[int, JobPod]:
    """By index, the failed pod with the highest failure count, for indexes that are to be retried and have no active
    pod."""
    running = {job_pod.index for job_pod in active}
    latest: dict[int, JobPod] = {}
    for job_pod in job_pods:
        index = job_pod.index
        if not (job_pod.failed and job_pod.tracked and job_pod.valid):
            continue
        if index in running or index in succeeded or index in failed:
            continue
        known = latest.get(index)
        if known is None or _supersedes(job_pod, known):
            latest[index] = job_pod
    return latest


def _supersedes(job_pod: JobPod, known: JobPod) -> bool:
    later = finished_at(job_pod.pod) >= finished_at(known.pod)
    return later and sum(failure_counts(job_pod.pod)) >= sum(failure_counts(known.pod))
