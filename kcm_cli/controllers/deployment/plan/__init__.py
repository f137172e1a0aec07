"""What to do for a Deployment: ``plan`` decides on its ReplicaSets, ``status`` says what came of it."""

from kcm_cli.controllers.deployment.plan.decide import plan
from kcm_cli.controllers.deployment.plan.rollout import Rollout
from kcm_cli.controllers.deployment.plan.status import next_check_s, status

__all__ = ["Rollout", "next_check_s", "plan", "status"]
