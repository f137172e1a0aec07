"""What to do for a CronJob: ``plan`` says what to start now, ``status`` what its Jobs have come to."""

from kcm_cli.controllers.cronjob.plan.decide import REPLACE, CronJobPlan, plan
from kcm_cli.controllers.cronjob.plan.status import status

__all__ = ["REPLACE", "CronJobPlan", "plan", "status"]
