"""Options of the daemonset-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class DaemonSetConfig:
    """Options of the daemonset controller."""

    concurrent_syncs: int = concurrency(
        "DaemonSets", 2, flag="concurrent-daemonset-syncs", key="ConcurrentDaemonSetSyncs", minimum=1
    )
