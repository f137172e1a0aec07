"""How long operations on volumes take, whichever controller asks for them.

upstream: pkg/volume/util/metrics.go
"""

from kcm_cli.component.metrics import Registry

OPERATION_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)


class StorageOperations:
    """storage_operation_duration_seconds."""

    def __init__(self, registry: Registry) -> None:
        self._took = registry.histogram(
            "storage_operation_duration_seconds",
            "Seconds that an operation on a volume took.",
            OPERATION_BUCKETS,
            labels=("volume_plugin", "operation_name", "status", "migrated"),
        )

    def ended(
        self, plugin: str, operation: str, took_s: float, *, failed: bool = False, migrated: bool = False
    ) -> None:
        """An operation has ended. ``migrated``: on a volume of a kind that a CSI driver has taken over."""
        status = "fail-unknown" if failed else "success"
        self._took.labels(plugin, operation, status, "true" if migrated else "false").observe(took_s)
