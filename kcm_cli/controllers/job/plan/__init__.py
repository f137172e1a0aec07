"""The decisions about a Job: ``plan`` decides on its end and its pods, ``status`` computes the status from the
outcome."""

from kcm_cli.controllers.job.plan.decide import Management, SyncAction, give_up, plan, remove_finalizer
from kcm_cli.controllers.job.plan.state import JobState, with_uncounted
from kcm_cli.controllers.job.plan.status import Tracking, finished, status
from kcm_cli.controllers.job.plan.tracking import counted

__all__ = [
    "Management",
    "JobState",
    "SyncAction",
    "Tracking",
    "counted",
    "finished",
    "give_up",
    "plan",
    "remove_finalizer",
    "status",
    "with_uncounted",
]
