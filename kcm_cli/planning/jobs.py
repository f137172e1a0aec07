"""Whether a Job is finished.

upstream: pkg/controller/job/util/utils.go
"""

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Condition

COMPLETE = "Complete"
FAILED = "Failed"


def finished_condition(job: Job) -> Condition | None:
    """The first condition Complete or Failed that is true."""
    for condition in job.status.conditions:
        if condition.type in (COMPLETE, FAILED) and condition.status == "True":
            return condition
    return None


def is_finished(job: Job) -> bool:
    return finished_condition(job) is not None


def is_complete(job: Job) -> bool:
    """Whether the Job is complete."""
    return any(condition.type == COMPLETE and condition.status == "True" for condition in job.status.conditions)
