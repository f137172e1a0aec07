"""Options of the replicaset-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ReplicaSetConfig:
    """Options of the replicaset controller."""

    concurrent_syncs: int = concurrency("ReplicaSets", 5, flag="concurrent-replicaset-syncs", key="ConcurrentRSSyncs")
