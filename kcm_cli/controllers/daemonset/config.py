"""Options of the daemonset-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class DaemonSetConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "DaemonSets", 2, "concurrent-daemonset-syncs", "ConcurrentDaemonSetSyncs", minimum=1
    )
