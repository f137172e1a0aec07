"""What becomes of the EndpointSlices of a Service."""

from kcm_cli.controllers.endpointslice.plan.decide import Decision, Efficiency, plan, stages
from kcm_cli.controllers.endpointslice.plan.labels import MANAGER

__all__ = ["MANAGER", "Decision", "Efficiency", "plan", "stages"]
