"""The decisions about a DaemonSet: ``plan`` decides about its pods, ``status`` counts them."""

from kcm_cli.controllers.daemonset.plan.decide import DaemonSetPlan, plan
from kcm_cli.controllers.daemonset.plan.status import status

__all__ = ["DaemonSetPlan", "plan", "status"]
