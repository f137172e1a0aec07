"""Options of the replicationcontroller-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class ReplicationControllerConfig(OptionGroup):
    concurrent_syncs: int = concurrency("ReplicationControllers", 5, "concurrent-rc-syncs", "ConcurrentRCSyncs")
