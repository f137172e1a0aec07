"""The decisions about the EndpointSlices of a Service."""

from kcm_cli.controllers.endpointslice.plan.decide import Slicing, plan
from kcm_cli.controllers.endpointslice.plan.desired import MANAGER

__all__ = ["MANAGER", "Slicing", "plan"]
