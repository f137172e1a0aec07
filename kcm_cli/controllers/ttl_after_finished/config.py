"""Options of the ttl-after-finished-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class TTLAfterFinishedConfig(OptionGroup):
    concurrent_syncs: int = concurrency("finished Jobs", 5, "concurrent-ttl-after-finished-syncs", "ConcurrentTTLSyncs")
