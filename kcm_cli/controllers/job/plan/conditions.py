"""The conditions of a Job: how they change, and which one ends the Job.

A new condition is appended; a known one is changed in place. An announced ending is final. Failure takes precedence
over success.

upstream: pkg/controller/job/job_controller.go#ensureJobConditionStatus, syncJob
"""

from collections.abc import Sequence
from datetime import datetime

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Condition
from kcm_cli.controllers.job.plan import policies, spec
from kcm_cli.controllers.job.plan.pods import JobPod
from kcm_cli.controllers.job.plan.state import JobState
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.conditions import Conditions, find
from kcm_cli.planning.jobs import FAILED


def condition(type_: str, reason: str, message: str, now: datetime, *, status: str = "True") -> Condition:
    """A condition with the present time as its transition and probe time."""
    time = format_time(now)
    return Condition(type_, status, reason, message, last_transition_time=time, last_probe_time=time)


def ensured(conditions: Conditions, new: Condition) -> Conditions:
    """The conditions with this one set; the same object if nothing changes. A condition that is absent is not added as
    False."""
    current = find(conditions, new.type)
    if current is None:
        return conditions if new.status == "False" else (*conditions, new)
    if (current.status, current.reason, current.message) == (new.status, new.reason, new.message):
        return conditions
    return tuple(new if known is current else known for known in conditions)


def ending(state: JobState, now: datetime) -> Condition | None:
    """The condition that ends the Job; None while it goes on.

    Its type is SuccessCriteriaMet or FailureTarget, or Failed where FailureTarget is in the status already.
    """
    job = state.job
    announced = _true(job, spec.SUCCESS_CRITERIA_MET)
    if announced is not None:
        return announced
    announced = _true(job, spec.FAILURE_TARGET)
    if announced is not None:
        return condition(FAILED, announced.reason, announced.message, now)
    failure = _failure(state)
    if failure is not None:
        return condition(spec.FAILURE_TARGET, *failure, now)
    if spec.is_indexed(job):
        message = policies.met(job.spec.success_policy, spec.completions(job), state.succeeded_indexes)
        if message is not None:
            return condition(spec.SUCCESS_CRITERIA_MET, spec.SUCCESS_POLICY, message, now)
    return None


def completed(now: datetime) -> Condition:
    """The condition of a Job that has all its completions and no active pods."""
    message = "Reached expected number of succeeded pods"
    return condition(spec.SUCCESS_CRITERIA_MET, spec.COMPLETIONS_REACHED, message, now)


def _true(job: Job, type_: str) -> Condition | None:
    found = find(job.status.conditions, type_)
    return found if found is not None and found.status == "True" else None


def _failure(state: JobState) -> tuple[str, str] | None:
    """The reason and message of the first rule that fails the Job; None if there is none."""
    job = state.job
    failed_pods = (job_pod.pod for job_pod in state.pods if job_pod.failed)
    message = policies.failing_message(job.spec.pod_failure_policy, failed_pods)
    if message is not None:
        return spec.POD_FAILURE_POLICY, message
    if state.failed > spec.backoff_limit(job) or _restarted_too_often(job, state.pods):
        return spec.BACKOFF_LIMIT_EXCEEDED, "Job has reached the specified backoff limit"
    deadline_s = state.deadline_s
    if deadline_s is not None and deadline_s <= 0:
        return spec.DEADLINE_EXCEEDED, "Job was active longer than specified deadline"
    return _failed_by_indexes(state)


def _failed_by_indexes(state: JobState) -> tuple[str, str] | None:
    failed = state.failed_indexes
    if not failed:
        return None
    limit = state.job.spec.max_failed_indexes
    if limit is not None and failed.total > limit:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return spec.MAX_FAILED_INDEXES_EXCEEDED, message
    if failed.total + state.succeeded_indexes.total >= spec.completions(state.job):
        return spec.FAILED_INDEXES, "Job has failed indexes"
    return None


def _restarted_too_often(job: Job, job_pods: Sequence[JobPod]) -> bool:
    """Whether restarts of containers (restartPolicy OnFailure) have reached the backoff limit."""
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = 0
    for job_pod in job_pods:
        status = job_pod.pod.status
        if status.phase in ("Running", "Pending"):
            restarts += sum(container.restart_count for container in status.init_container_statuses)
            restarts += sum(container.restart_count for container in status.container_statuses)
    limit = spec.backoff_limit(job)
    return restarts >= limit if limit > 0 else restarts > 0
