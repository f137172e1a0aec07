"""How a Job stands: its pods counted, its indexes, and the verdict on whether it is over.

upstream: pkg/controller/job/job_controller.go#syncJob, up to the management of pods
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from kcm_cli.api.batch import Job, JobStatus, Uncounted
from kcm_cli.api.core import Condition
from kcm_cli.controllers.job.plan import failure_policy, names, spec
from kcm_cli.controllers.job.plan.backoff import Backoff, finished_at
from kcm_cli.controllers.job.plan.facts import Facts, facts_of, failure_counts
from kcm_cli.controllers.job.plan.indexes import NONE, Indexes, parse
from kcm_cli.controllers.job.plan.verdict import Standing, judge
from kcm_cli.controllers.job.snapshot import Snapshot
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.pods import is_ready, is_terminating

NO_UNCOUNTED = Uncounted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A Job before anything is done about it.

    status: the status so far, with its start time and with uncounted pods. succeeded and failed include what is not
    counted in the status yet. succeeded_before: the indexes in the status. delayed: by index, the failed pod that
    is kept until its successor exists, because its annotations tell the failures. deadline_s: seconds until
    activeDeadlineSeconds have passed.
    """

    snapshot: Snapshot
    status: JobStatus
    facts: tuple[Facts, ...]
    active: tuple[Facts, ...]
    ready: int
    terminating: int
    succeeded: int
    failed: int
    succeeded_before: Indexes
    succeeded_indexes: Indexes
    failed_indexes: Indexes | None
    delayed: Mapping[int, Facts]
    backoff: Backoff
    verdict: Condition | None
    deadline_s: float | None

    @property
    def job(self) -> Job:
        return self.snapshot.job

    @property
    def uncounted(self) -> Uncounted:
        return self.status.uncounted_terminated_pods or NO_UNCOUNTED


def assess(snapshot: Snapshot, now: datetime) -> Assessment:
    """Count the pods and decide whether the Job is over."""
    job = snapshot.job
    only_ended = spec.replaces_only_failed(job, snapshot.features)
    facts = facts_of(job, snapshot.pods, only_ended=only_ended)
    active = tuple(fact for fact in facts if fact.active)
    status = _started(job, now)
    uncounted = status.uncounted_terminated_pods or NO_UNCOUNTED
    succeeded, failed = _newly_ended(facts, uncounted)
    counting = [fact for fact in failed if _counts(job, fact)]
    before, succeeded_indexes, failed_indexes = _indexes(job, facts)
    standing = Standing(
        job=job,
        facts=facts,
        failed=status.failed + len(counting) + len(uncounted.failed),
        succeeded_indexes=succeeded_indexes,
        failed_indexes=failed_indexes,
        running_s=None if status.start_time is None else (now - parse_time(status.start_time)).total_seconds(),
    )
    verdict = judge(standing, now)
    indexed = spec.is_indexed(job)
    return Assessment(
        snapshot=snapshot,
        status=status,
        facts=facts,
        active=active,
        ready=sum(is_ready(fact.pod) for fact in active),
        terminating=sum(is_terminating(pod) for pod in snapshot.pods),
        succeeded=succeeded_indexes.total if indexed else status.succeeded + len(succeeded) + len(uncounted.succeeded),
        failed=standing.failed,
        succeeded_before=before,
        succeeded_indexes=succeeded_indexes,
        failed_indexes=failed_indexes,
        delayed={} if failed_indexes is None else _delayed(facts, active, succeeded_indexes, failed_indexes),
        backoff=snapshot.backoff.after([fact.pod for fact in succeeded], [fact.pod for fact in failed]),
        verdict=verdict,
        deadline_s=None if verdict is not None else standing.deadline_s,
    )


def _started(job: Job, now: datetime) -> JobStatus:
    """The status with what every sync sets: pods to count, and a start time unless it is suspended."""
    status = job.status
    start = status.start_time
    if start is None and not spec.is_suspended(job):
        start = format_time(now)
    return msgspec.structs.replace(with_uncounted(status), start_time=start)


def with_uncounted(status: JobStatus) -> JobStatus:
    """The same status: where nothing is said of pods to count, there are none."""
    return msgspec.structs.replace(status, uncounted_terminated_pods=status.uncounted_terminated_pods or NO_UNCOUNTED)


def _newly_ended(facts: Sequence[Facts], uncounted: Uncounted) -> tuple[list[Facts], list[Facts]]:
    """The pods that succeeded and failed and are neither counted nor among the uncounted."""
    known = set(uncounted.succeeded)
    succeeded = [f for f in facts if f.succeeded and f.tracked and f.valid and f.pod.uid not in known]
    known = set(uncounted.failed)
    failed = [f for f in facts if f.failed and f.tracked and f.valid and f.pod.uid not in known]
    return succeeded, failed


def _counts(job: Job, fact: Facts) -> bool:
    return failure_policy.match(job.spec.pod_failure_policy, fact.pod).counts


def _indexes(job: Job, facts: Sequence[Facts]) -> tuple[Indexes, Indexes, Indexes | None]:
    """The indexes that had succeeded, those that have, and those that have failed (where each has its limit)."""
    if not spec.is_indexed(job):
        return NONE, NONE, None
    completions = spec.completions(job)
    waiting = [fact for fact in facts if fact.tracked and fact.valid]
    before = parse(job.status.completed_indexes, completions)
    succeeded = before.with_indexes({fact.index for fact in waiting if fact.succeeded})
    if not spec.counts_per_index(job):
        return before, succeeded, None
    failed = parse(job.status.failed_indexes or "", completions)
    return before, succeeded, failed.with_indexes({fact.index for fact in waiting if _index_failed(job, fact)})


def _index_failed(job: Job, fact: Facts) -> bool:
    if not fact.failed:
        return False
    match = failure_policy.match(job.spec.pod_failure_policy, fact.pod)
    if match.action == names.FAIL_INDEX:
        return True
    return match.counts and failure_counts(fact.pod)[0] >= (job.spec.backoff_limit_per_index or 0)


def _delayed(
    facts: Sequence[Facts], active: Sequence[Facts], succeeded: Indexes, failed: Indexes
) -> Mapping[int, Facts]:
    """The failed pod with the highest count of each index that is to be tried again and has no active pod."""
    running = {fact.index for fact in active}
    latest: dict[int, Facts] = {}
    for fact in facts:
        index = fact.index
        if not (fact.failed and fact.tracked and fact.valid):
            continue
        if index in running or index in succeeded or index in failed:
            continue
        known = latest.get(index)
        if known is None or _supersedes(fact, known):
            latest[index] = fact
    return latest


def _supersedes(fact: Facts, known: Facts) -> bool:
    later = finished_at(fact.pod) >= finished_at(known.pod)
    return later and sum(failure_counts(fact.pod)) >= sum(failure_counts(known.pod))
