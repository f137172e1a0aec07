"""What to do for a StatefulSet: ``plan`` names the steps, ``status`` says what came of them."""

from kcm_cli.controllers.statefulset.plan.decide import Plan, plan
from kcm_cli.controllers.statefulset.plan.status import differs, status

__all__ = ["Plan", "plan", "differs", "status"]
