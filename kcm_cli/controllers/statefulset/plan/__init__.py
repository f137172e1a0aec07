"""What to do for a StatefulSet: ``decide`` names the steps, ``status`` says what came of them."""

from kcm_cli.controllers.statefulset.plan.decide import Decision, decide
from kcm_cli.controllers.statefulset.plan.status import differs, status

__all__ = ["Decision", "decide", "differs", "status"]
