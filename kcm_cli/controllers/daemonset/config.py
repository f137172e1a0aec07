"""Options of the daemonset-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class DaemonSetConfig:
    concurrent_syncs: int = concurrency(
        "DaemonSets", 2, "concurrent-daemonset-syncs", "ConcurrentDaemonSetSyncs", minimum=1
    )
