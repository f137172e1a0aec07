"""maxSurge and maxUnavailable of a rolling update, in pods.

upstream: pkg/controller/daemon/update.go#updatedDesiredNodeCounts
"""

from kcm_cli.api.apps import DaemonSet
from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning.rollout import rounded_up

ROLLING_UPDATE = "RollingUpdate"


def surge(daemon_set: DaemonSet, desired: int) -> int:
    """maxSurge: the number of nodes that may have a second pod. Raises FormatError."""
    strategy = daemon_set.spec.update_strategy
    if strategy.type != ROLLING_UPDATE or strategy.rolling_update is None:
        return 0
    return rounded_up(strategy.rolling_update.max_surge, desired)


def allows_surge(daemon_set: DaemonSet) -> bool:
    try:
        return surge(daemon_set, 1) > 0
    except FormatError:
        return False


def surge_and_unavailable(daemon_set: DaemonSet, desired: int) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) in pods. If both are zero, one pod may be unavailable. Raises FormatError."""
    rolling = daemon_set.spec.update_strategy.rolling_update
    unavailable = rounded_up(rolling.max_unavailable if rolling is not None else None, desired)
    more = surge(daemon_set, desired)
    return (more, unavailable) if more or unavailable or not desired else (0, 1)
