"""The snapshot of one budget."""

import msgspec

from kcm_cli.api.core import Pod
from kcm_cli.api.policy import PodDisruptionBudget


class Snapshot(msgspec.Struct, frozen=True):
    """A budget and the pods that it selects.

    scale: the sum of their controllers' scales; 0 if the budget does not depend on it. unmanaged: some pods have no
    controller.
    """

    budget: PodDisruptionBudget
    pods: tuple[Pod, ...]
    scale: int = 0
    unmanaged: bool = False
