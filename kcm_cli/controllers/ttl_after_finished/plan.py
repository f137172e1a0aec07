"""Decides when a finished Job is deleted.

upstream: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go#timeLeft
"""

from datetime import datetime

from kcm_cli.api.batch import Job
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.times import parse_time, shifted
from kcm_cli.planning.jobs import finished_condition


class FinishTimeUnknown(SyncError):
    """The condition of a finished Job has no time."""


def expires(job: Job) -> bool:
    """Whether this controller is to delete the Job: it is finished, has a TTL, and is not being deleted."""
    return not job.deleting and job.spec.ttl_seconds_after_finished is not None and finished_condition(job) is not None


def plan(job: Job, now: datetime) -> float | None:
    """Seconds until the Job is to be deleted, negative if overdue; None if it does not expire.

    Raises FinishTimeUnknown.
    """
    condition, ttl_s = finished_condition(job), job.spec.ttl_seconds_after_finished
    if job.deleting or condition is None or ttl_s is None:
        return None
    if not condition.last_transition_time:
        raise FinishTimeUnknown(f"unable to find the time when the Job {job.key} finished")
    return (shifted(parse_time(condition.last_transition_time), ttl_s) - now).total_seconds()
