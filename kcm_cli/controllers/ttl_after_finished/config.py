"""Options of the ttl-after-finished-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class TTLAfterFinishedConfig:
    concurrent_syncs: int = concurrency("finished Jobs", 5, "concurrent-ttl-after-finished-syncs", "ConcurrentTTLSyncs")
