"""What the daemonset controller counts."""

from kcm_cli.component.metrics import Registry
from kcm_cli.engine.own_writes import stale_sync_skips


class DaemonSetMetrics:
    """daemonset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self.skipped = stale_sync_skips(registry, "daemonset", "DaemonSet")
