"""The numbers and the suspension of a Job, once it is known what became of the work on its pods.

upstream: pkg/controller/job/job_controller.go#syncJob, after the management of pods
"""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from kcm_cli.api.batch import JOBS, JobStatus
from kcm_cli.api.core import Condition, Pod
from kcm_cli.controllers.job.plan import names, spec
from kcm_cli.controllers.job.plan.assess import Assessment
from kcm_cli.controllers.job.plan.conditions import condition, ensured
from kcm_cli.controllers.job.plan.manage import Work
from kcm_cli.controllers.job.plan.verdict import completed
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Create, Delete, Notice, Outcome, ref_to
from kcm_cli.planning.pods import is_ready


@dataclass(frozen=True, slots=True)
class Progress:
    """The status after the work on pods, the verdict as far as it can be acted on, and the Events to emit."""

    status: JobStatus
    verdict: Condition | None
    notices: tuple[Notice, ...] = ()


def progress(assessment: Assessment, work: Work, outcome: Outcome, now: datetime) -> Progress:
    """What the pods' number is now, and whether the Job is over or suspended."""
    status = _numbers(assessment, work, outcome)
    if assessment.verdict is not None:
        # Pods that are not deleted yet, or not in the cache yet, keep the Job from being declared over.
        kept = bool(outcome.failed) or not assessment.snapshot.satisfied
        return Progress(status, None if kept else assessment.verdict)
    if _complete(assessment, status.active):
        return Progress(status, completed(now))
    if not work.managed:
        return Progress(status, None)
    return _suspension(assessment, status, now)


def _numbers(assessment: Assessment, work: Work, outcome: Outcome) -> JobStatus:
    active = len(assessment.active)
    ready, terminating = assessment.ready, assessment.terminating
    deleted = {done.action.name for done in outcome.done if isinstance(done.action, Delete)}
    if deleted:
        active -= len(deleted)
        terminating += len(deleted)
        ready -= sum(_was_ready(fact.pod, deleted) for fact in assessment.active)
    active += sum(isinstance(done.action, Create) for done in outcome.done)
    if work.wait_s is not None:
        active = 0  # upstream: pkg/controller/job/job_controller.go#manageJob reports none while it backs off
    return msgspec.structs.replace(assessment.status, active=active, ready=ready, terminating=terminating)


def _was_ready(pod: Pod, deleted: set[str]) -> bool:
    return pod.name in deleted and is_ready(pod)


def _complete(assessment: Assessment, active: int) -> bool:
    """All completions are there; a work queue is done with its first success, once the others have ended."""
    if active != 0:
        return False
    completions = assessment.job.spec.completions
    return assessment.succeeded > 0 if completions is None else assessment.succeeded >= completions


def _suspension(assessment: Assessment, status: JobStatus, now: datetime) -> Progress:
    job = assessment.job
    suspended = spec.is_suspended(job)
    if suspended:
        new = condition(names.SUSPENDED, "JobSuspended", "Job suspended", now)
        notice = Notice(ref_to(JOBS, job), "Normal", "Suspended", "Job suspended")
    else:
        new = condition(names.SUSPENDED, "JobResumed", "Job resumed", now, status="False")
        notice = Notice(ref_to(JOBS, job), "Normal", "Resumed", "Job resumed")
    conditions = ensured(status.conditions, new)
    if conditions is status.conditions:
        return Progress(status, None)
    start = status.start_time
    if not suspended:
        start = format_time(now)  # the deadline counts from the last resumption
    elif assessment.snapshot.features.forgets_start:
        start = None
    return Progress(msgspec.structs.replace(status, conditions=conditions, start_time=start), None, (notice,))
