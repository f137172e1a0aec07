"""What becomes of the EndpointSlices that mirror Endpoints."""

from kcm_cli.controllers.endpointslice_mirroring.plan.decide import Decision, plan, removal, stages
from kcm_cli.controllers.endpointslice_mirroring.plan.names import MANAGER, mirrorable

__all__ = ["MANAGER", "Decision", "plan", "mirrorable", "removal", "stages"]
