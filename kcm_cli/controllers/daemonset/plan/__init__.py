"""The decisions about a DaemonSet: ``plan`` decides about its pods, ``status`` counts them."""

from kcm_cli.controllers.daemonset.plan.decide import Placement, plan
from kcm_cli.controllers.daemonset.plan.status import status

__all__ = ["Placement", "plan", "status"]
