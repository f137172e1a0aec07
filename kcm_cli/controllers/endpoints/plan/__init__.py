"""What becomes of the Endpoints of a Service."""

from kcm_cli.controllers.endpoints.plan.decide import MANAGED_BY, MANAGER, plan

__all__ = ["MANAGED_BY", "MANAGER", "plan"]
