"""Options of the statefulset-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class StatefulSetConfig:
    """Options of the statefulset controller."""

    concurrent_syncs: int = concurrency(
        "StatefulSets", 5, flag="concurrent-statefulset-syncs", key="ConcurrentStatefulSetSyncs", minimum=1
    )
