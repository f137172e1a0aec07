"""The metrics of the controller: attempts to create claims.

upstream: pkg/controller/volume/ephemeral/metrics/metrics.go
"""

from kcm_cli.component.metrics import Registry


class EphemeralVolumeMetrics:
    """The metrics ephemeral_volume_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self.attempts = registry.counter(
            "ephemeral_volume_controller_create_total", "Number of requests to create a PersistentVolumeClaim."
        ).labels()
        self.failures = registry.counter(
            "ephemeral_volume_controller_create_failures_total", "Number of these requests that failed."
        ).labels()
