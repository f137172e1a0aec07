"""The status of a Job: numbers of pods, suspension, and the ending.

Expected flow: ``status`` adds the uids of ended pods to status.uncountedTerminatedPods (``tracking.ended_pods``) and
announces the ending. When that status is stored, the finalizers of these pods are removed, and they are counted
(``tracking.counted``). ``finished`` adds the final condition when no pod is uncounted or terminating. A sync that stops
at any step is continued by the next one.

upstream: pkg/controller/job/job_controller.go#syncJob, after the management of pods; trackJobStatusAndRemoveFinalizers
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from kcm_cli.api.batch import JOBS, JobStatus, Uncounted
from kcm_cli.api.core import Condition, Pod
from kcm_cli.controllers.job.plan import spec
from kcm_cli.controllers.job.plan.conditions import completed, condition, ensured
from kcm_cli.controllers.job.plan.decide import Management
from kcm_cli.controllers.job.plan.spec import Features
from kcm_cli.controllers.job.plan.state import NO_UNCOUNTED, JobState
from kcm_cli.controllers.job.plan.tracking import counted, ended_pods
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.actions import Create, Delete, Notice, Outcome, ref_to
from kcm_cli.planning.conditions import is_true
from kcm_cli.planning.jobs import COMPLETE, FAILED


class Tracking(msgspec.Struct, frozen=True, kw_only=True):
    """The first status write of a sync, and the steps that follow it.

    notices: the Events to emit after the write. terminating: the number of terminating pods that the final condition
    waits for. waiting: uids of pods that have the finalizer. release: pods whose finalizers are removed after the
    write. final: the condition that ends the Job. full: there are more ended pods than one sync counts. policy_actions:
    how often each action of the pod failure policy was applied.
    """

    status: JobStatus
    notices: tuple[Notice, ...]
    terminating: int
    waiting: frozenset[str]
    release: tuple[Pod, ...]
    final: Condition | None
    full: bool
    policy_actions: Mapping[str, int]


def status(plan: Management, outcome: Outcome, now: datetime) -> Tracking:
    """The status after the plan's pods were created or deleted with this outcome."""
    state = plan.state
    waiting = frozenset(job_pod.pod.uid for job_pod in state.pods if job_pod.tracked)
    numbers = _numbers(plan, outcome)
    over = _ending(plan, outcome, numbers.active, now)
    notices: tuple[Notice, ...] = ()
    if over is None and plan.managed:
        numbers, notices = _suspension(state, numbers, now)
    new = counted(numbers, waiting)
    failing = over is not None and over.type != spec.SUCCESS_CRITERIA_MET
    ended = ended_pods(state, new, over=over is not None, failing=failing)
    uncounted = Uncounted(tuple(ended.succeeded), tuple(ended.failed))
    new = msgspec.structs.replace(new, uncounted_terminated_pods=uncounted)
    if spec.is_indexed(state.job):
        new = _indexed(state, new)
    features = state.snapshot.features
    new, final = _announced(new, over, now, features)
    if final is not None:
        new = _with_start(state, new, now)
    terminating = new.terminating or 0
    if not features.replacement:
        new = msgspec.structs.replace(new, terminating=None)
    return Tracking(
        status=new,
        notices=notices,
        terminating=terminating if features.delays_end else 0,
        waiting=waiting,
        release=tuple(ended.release),
        final=final,
        full=len(ended) >= spec.MAX_UNCOUNTED,
        policy_actions=ended.actions,
    )


def _ending(plan: Management, outcome: Outcome, active: int, now: datetime) -> Condition | None:
    """The condition that ends the Job; None while pods are not deleted, or not in the cache yet."""
    if plan.ending is not None:
        # Pods that are not deleted yet, or not in the cache yet, keep the Job from being declared over.
        kept = bool(outcome.failed) or not plan.state.snapshot.satisfied
        return None if kept else plan.ending
    return completed(now) if _complete(plan.state, active) else None


def finished(tracking: Tracking, status: JobStatus, now: datetime) -> JobStatus | None:
    """The status with the final condition; None while a pod is uncounted or terminating, or while the Job goes on."""
    final = tracking.final
    uncounted = status.uncounted_terminated_pods or NO_UNCOUNTED
    if final is None or tracking.full or uncounted != NO_UNCOUNTED or tracking.terminating:
        return None
    conditions = ensured(status.conditions, condition(final.type, final.reason, final.message, now))
    ended = _completed_at(status, final) if final.type == COMPLETE else status.completion_time
    return msgspec.structs.replace(status, conditions=conditions, completion_time=ended)


def _completed_at(status: JobStatus, final: Condition) -> str | None:
    """The time of the final condition, but not before the Job's start, which an API server refuses: the clock may have
    been set back, or that of the former leader was ahead."""
    start, end = status.start_time, final.last_transition_time
    if start is None or end is None:
        return end
    return max(start, end, key=parse_time)


def _with_start(state: JobState, status: JobStatus, now: datetime) -> JobStatus:
    """The status of a Job that ends, with a start: an API server refuses the end of a Job without one.

    A Job that was suspended has none, and may end all the same: by a pod that ended meanwhile, or with fewer
    completions. If it has none to reach, it needs no start.
    """
    job = state.job
    if status.start_time is not None or (spec.is_suspended(job) and job.spec.completions == 0):
        return status
    return msgspec.structs.replace(status, start_time=format_time(now))


def _indexed(state: JobState, status: JobStatus) -> JobStatus:
    failed = state.failed_indexes
    return msgspec.structs.replace(
        status,
        succeeded=state.succeeded_indexes.total,
        completed_indexes=state.succeeded_indexes.text,
        failed_indexes=None if failed is None else failed.text,
    )


def _announced(
    status: JobStatus, over: Condition | None, now: datetime, features: Features
) -> tuple[JobStatus, Condition | None]:
    """The status with the interim condition (FailureTarget or SuccessCriteriaMet), and the final condition to add
    later."""
    if over is None:
        return status, None
    by_policy = over.reason in (spec.POD_FAILURE_POLICY, spec.SUCCESS_POLICY)
    interim = over.type in (spec.FAILURE_TARGET, spec.SUCCESS_CRITERIA_MET)
    if interim and (by_policy or features.delays_end) and not is_true(status.conditions, over.type):
        status = msgspec.structs.replace(status, conditions=(*status.conditions, over))
    type_ = COMPLETE if over.type == spec.SUCCESS_CRITERIA_MET else FAILED
    return status, condition(type_, over.reason, over.message, now)


def _numbers(plan: Management, outcome: Outcome) -> JobStatus:
    state = plan.state
    active = len(state.active)
    ready, terminating = state.ready, state.terminating
    deleted = {done.action.name for done in outcome.done if isinstance(done.action, Delete)}
    if deleted:
        active -= len(deleted)
        terminating += len(deleted)
        ready -= sum(job_pod.ready and job_pod.pod.name in deleted for job_pod in state.active)
    active += sum(isinstance(done.action, Create) for done in outcome.done)
    return msgspec.structs.replace(state.status, active=active, ready=ready, terminating=terminating)


def _complete(state: JobState, active: int) -> bool:
    """Whether the Job has all its completions and no active pods. A work queue needs one success."""
    if active != 0:
        return False
    completions = state.job.spec.completions
    return state.succeeded > 0 if completions is None else state.succeeded >= completions


def _suspension(state: JobState, status: JobStatus, now: datetime) -> tuple[JobStatus, tuple[Notice, ...]]:
    """The status with the condition Suspended, and the Event if that has changed."""
    job = state.job
    suspended = spec.is_suspended(job)
    if suspended:
        new = condition(spec.SUSPENDED, "JobSuspended", "Job suspended", now)
        notice = Notice(ref_to(JOBS, job), "Normal", "Suspended", "Job suspended")
    else:
        new = condition(spec.SUSPENDED, "JobResumed", "Job resumed", now, status="False")
        notice = Notice(ref_to(JOBS, job), "Normal", "Resumed", "Job resumed")
    conditions = ensured(status.conditions, new)
    if conditions is status.conditions:
        return status, ()
    start = status.start_time
    if not suspended:
        start = format_time(now)  # the deadline counts from the last resumption
    elif state.snapshot.features.forgets_start:
        start = None
    return msgspec.structs.replace(status, conditions=conditions, start_time=start), (notice,)
