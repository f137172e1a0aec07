"""What the daemonset controller counts."""

from kcm_cli.component.metrics import Registry


class DaemonSetMetrics:
    """daemonset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._skips = registry.counter(
            "daemonset_controller_stale_sync_skips_total",
            "How often a DaemonSet was not synced since a cache had not caught up.",
            labels=("group", "resource"),
        )

    def skipped(self, group: str, resource: str) -> None:
        self._skips.labels(group, resource).inc()
