"""What to do for a DaemonSet: ``decide`` plans its pods, ``status`` counts them."""

from kcm_cli.controllers.daemonset.plan.decide import Decision, decide
from kcm_cli.controllers.daemonset.plan.status import differs, status

__all__ = ["Decision", "decide", "differs", "status"]
