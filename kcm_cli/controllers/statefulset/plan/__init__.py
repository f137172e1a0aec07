"""The decisions about a StatefulSet: ``plan`` decides on its pods, ``status`` computes the status from the outcome."""

from kcm_cli.controllers.statefulset.plan.decide import Replicas, plan
from kcm_cli.controllers.statefulset.plan.status import differs, status, unobserved

__all__ = ["Replicas", "plan", "differs", "status", "unobserved"]
