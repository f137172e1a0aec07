"""How often and how long the root CA is published, by HTTP code."""

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.shared.sync_metrics import CodedSyncMetrics


class SyncMetrics(CodedSyncMetrics):
    """root_ca_cert_publisher_sync_*."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry, "root_ca_cert_publisher", "a namespace")
