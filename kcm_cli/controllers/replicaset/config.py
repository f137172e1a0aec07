"""Options of the replicaset-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ReplicaSetConfig:
    concurrent_syncs: int = concurrency("ReplicaSets", 5, "concurrent-replicaset-syncs", "ConcurrentRSSyncs")
