"""Options of the replicationcontroller-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ReplicationControllerConfig:
    """Options of the replicationcontroller controller."""

    concurrent_syncs: int = concurrency(
        "ReplicationControllers", 5, flag="concurrent-rc-syncs", key="ConcurrentRCSyncs"
    )
