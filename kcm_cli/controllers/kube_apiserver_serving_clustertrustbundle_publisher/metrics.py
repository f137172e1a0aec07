"""How often and how long the CA of the API servers is published, by HTTP code."""

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.shared.sync_metrics import CodedSyncMetrics


class SyncMetrics(CodedSyncMetrics):
    """clustertrustbundle_publisher_sync_*."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry, "clustertrustbundle_publisher", "the bundle")
