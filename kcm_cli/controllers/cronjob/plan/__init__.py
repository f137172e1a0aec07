"""The decisions about a CronJob: ``plan`` decides which Job to create, ``status`` computes the status from its Jobs."""

from kcm_cli.controllers.cronjob.plan.decide import REPLACE, NextRun, plan
from kcm_cli.controllers.cronjob.plan.status import status

__all__ = ["REPLACE", "NextRun", "plan", "status"]
