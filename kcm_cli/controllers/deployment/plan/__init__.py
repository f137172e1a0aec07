"""The decisions about a Deployment: ``plan`` decides about its ReplicaSets, ``status`` computes the status from the
outcome."""

from kcm_cli.controllers.deployment.plan.decide import plan
from kcm_cli.controllers.deployment.plan.revisions import start
from kcm_cli.controllers.deployment.plan.rollout import Rollout
from kcm_cli.controllers.deployment.plan.status import Report, next_check_s, status, unobserved

__all__ = ["Report", "Rollout", "next_check_s", "plan", "start", "status", "unobserved"]
