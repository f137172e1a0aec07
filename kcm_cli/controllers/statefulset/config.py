"""Options of the statefulset-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class StatefulSetConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "StatefulSets", 5, "concurrent-statefulset-syncs", "ConcurrentStatefulSetSyncs", minimum=1
    )
