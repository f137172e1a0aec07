"""Options of the statefulset-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class StatefulSetConfig:
    concurrent_syncs: int = concurrency(
        "StatefulSets", 5, "concurrent-statefulset-syncs", "ConcurrentStatefulSetSyncs", minimum=1
    )
