"""Options of the device-taint-eviction-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class DeviceTaintEvictionConfig:
    concurrent_syncs: int = concurrency(
        "evictions and taint rules", 8, "concurrent-device-taint-eviction-syncs", "ConcurrentSyncs", minimum=1
    )
