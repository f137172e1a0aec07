"""What the disruption controller reads for one budget."""

import msgspec

from kcm_cli.api.core import Pod
from kcm_cli.api.policy import PodDisruptionBudget


class Snapshot(msgspec.Struct, frozen=True):
    """A budget and the pods that it selects.

    scale: how many pods their controllers ask for in sum (0 where the budget does not depend on it).
    unmanaged: some of the pods have no controller.
    """

    budget: PodDisruptionBudget
    pods: tuple[Pod, ...]
    scale: int = 0
    unmanaged: bool = False
