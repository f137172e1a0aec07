"""The decisions about a StatefulSet: ``plan`` lists the steps, ``status`` computes the status from the outcome."""

from kcm_cli.controllers.statefulset.plan.decide import Plan, plan
from kcm_cli.controllers.statefulset.plan.status import differs, status, unobserved

__all__ = ["Plan", "plan", "differs", "status", "unobserved"]
