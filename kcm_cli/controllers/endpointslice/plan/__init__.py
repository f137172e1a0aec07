"""The decisions about the EndpointSlices of a Service."""

from kcm_cli.controllers.endpointslice.plan.decide import SlicePlan, plan, stages
from kcm_cli.controllers.endpointslice.plan.desired import MANAGER

__all__ = ["MANAGER", "SlicePlan", "plan", "stages"]
