"""What the replicaset controller counts."""

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.shared.deletion_ages import DeletionAges
from kcm_cli.engine.own_writes import stale_sync_skips


class ReplicaSetMetrics:
    """replicaset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self.skipped = stale_sync_skips(registry, "replicaset", "ReplicaSet")
        self.chosen = DeletionAges(registry).chosen
