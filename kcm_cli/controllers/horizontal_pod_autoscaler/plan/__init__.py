"""The decisions about an autoscaler: ``plan`` decides on its target's size, ``status`` computes the status from the
outcome."""

from kcm_cli.controllers.horizontal_pod_autoscaler.plan.decide import Rescale, SyncFailed, needs_metrics, plan
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.proposals import is_valid
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.status import status

__all__ = ["Rescale", "SyncFailed", "is_valid", "needs_metrics", "plan", "status"]
