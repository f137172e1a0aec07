"""Whether a Job is over, and why: an earlier verdict stands, failure goes before success.

upstream: pkg/controller/job/job_controller.go#syncJob
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Condition
from kcm_cli.controllers.job.plan import failure_policy, names, spec, success_policy
from kcm_cli.controllers.job.plan.conditions import condition
from kcm_cli.controllers.job.plan.facts import Facts
from kcm_cli.controllers.job.plan.indexes import Indexes
from kcm_cli.planning.conditions import find
from kcm_cli.planning.jobs import FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a verdict depends on. running_s: seconds since the Job started."""

    job: Job
    facts: Sequence[Facts]
    failed: int
    succeeded_indexes: Indexes
    failed_indexes: Indexes | None
    running_s: float | None

    @property
    def deadline_s(self) -> float | None:
        """Seconds until activeDeadlineSeconds have passed; None for a Job without, or suspended."""
        deadline = self.job.spec.active_deadline_seconds
        if deadline is None or self.running_s is None or spec.is_suspended(self.job):
            return None
        return deadline - self.running_s


def judge(standing: Standing, now: datetime) -> Condition | None:
    """The condition that ends the Job, as it will be (SuccessCriteriaMet, FailureTarget) or was already announced
    (SuccessCriteriaMet, Failed); None while it goes on."""
    job = standing.job
    announced = _announced(job, names.SUCCESS_CRITERIA_MET)
    if announced is not None:
        return announced
    announced = _announced(job, names.FAILURE_TARGET)
    if announced is not None:
        return condition(FAILED, announced.reason, announced.message, now)
    failure = _failure(standing)
    if failure is not None:
        return condition(names.FAILURE_TARGET, *failure, now)
    if spec.is_indexed(job):
        message = success_policy.met(job.spec.success_policy, spec.completions(job), standing.succeeded_indexes)
        if message is not None:
            return condition(names.SUCCESS_CRITERIA_MET, names.SUCCESS_POLICY, message, now)
    return None


def completed(now: datetime) -> Condition:
    """The verdict once all completions are there and nothing runs any more."""
    message = "Reached expected number of succeeded pods"
    return condition(names.SUCCESS_CRITERIA_MET, names.COMPLETIONS_REACHED, message, now)


def _announced(job: Job, type_: str) -> Condition | None:
    found = find(job.status.conditions, type_)
    return found if found is not None and found.status == "True" else None


def _failure(standing: Standing) -> tuple[str, str] | None:
    """Reason and message of the first rule that fails the Job."""
    job = standing.job
    failed_pods = (fact.pod for fact in standing.facts if fact.failed)
    message = failure_policy.failing_message(job.spec.pod_failure_policy, failed_pods)
    if message is not None:
        return names.POD_FAILURE_POLICY, message
    if standing.failed > spec.backoff_limit(job) or _restarted_too_often(job, standing.facts):
        return names.BACKOFF_LIMIT_EXCEEDED, "Job has reached the specified backoff limit"
    deadline_s = standing.deadline_s
    if deadline_s is not None and deadline_s <= 0:
        return names.DEADLINE_EXCEEDED, "Job was active longer than specified deadline"
    return _failed_by_indexes(standing)


def _failed_by_indexes(standing: Standing) -> tuple[str, str] | None:
    failed = standing.failed_indexes
    if not failed:
        return None
    limit = standing.job.spec.max_failed_indexes
    if limit is not None and failed.total > limit:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return names.MAX_FAILED_INDEXES_EXCEEDED, message
    if failed.total + standing.succeeded_indexes.total >= spec.completions(standing.job):
        return names.FAILED_INDEXES, "Job has failed indexes"
    return None


def _restarted_too_often(job: Job, facts: Sequence[Facts]) -> bool:
    """Whether containers that are restarted in place have used up the backoff limit."""
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = 0
    for fact in facts:
        status = fact.pod.status
        if status.phase in ("Running", "Pending"):
            restarts += sum(container.restart_count for container in status.init_container_statuses)
            restarts += sum(container.restart_count for container in status.container_statuses)
    limit = spec.backoff_limit(job)
    return restarts >= limit if limit > 0 else restarts > 0
