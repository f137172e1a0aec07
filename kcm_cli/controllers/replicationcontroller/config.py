"""Options of the replicationcontroller-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ReplicationControllerConfig:
    concurrent_syncs: int = concurrency("ReplicationControllers", 5, "concurrent-rc-syncs", "ConcurrentRCSyncs")
