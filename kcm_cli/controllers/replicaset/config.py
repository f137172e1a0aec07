"""Options of the replicaset-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class ReplicaSetConfig(OptionGroup):
    concurrent_syncs: int = concurrency("ReplicaSets", 5, "concurrent-replicaset-syncs", "ConcurrentRSSyncs")
