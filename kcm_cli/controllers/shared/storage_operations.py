"""The duration of operations on volumes, for all controllers.

upstream: pkg/volume/util/metrics.go
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry

OPERATION_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)


class StorageOperations:
    """The metric storage_operation_duration_seconds."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._clock = clock
        self._took = registry.histogram(
            "storage_operation_duration_seconds",
            "Duration of operations on volumes, in seconds.",
            OPERATION_BUCKETS,
            labels=("volume_plugin", "operation_name", "status", "migrated"),
        )

    @contextmanager
    def measured(self, plugin: str, operation: str, *, migrated: bool = False) -> Iterator[None]:
        """Measures an operation. It failed if it raises; a cancelled one is not counted."""
        started, status = self._clock.monotonic(), ""
        try:
            yield
            status = "success"
        except Exception:
            status = "fail-unknown"
            raise
        finally:
            if status:
                labels = (plugin, operation, status, "true" if migrated else "false")
                self._took.labels(*labels).observe(self._clock.monotonic() - started)
