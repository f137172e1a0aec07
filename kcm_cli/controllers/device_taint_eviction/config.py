"""Options of the device-taint-eviction-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class DeviceTaintEvictionConfig:
    """Options of the device-taint-eviction controller."""

    concurrent_syncs: int = concurrency(
        "evictions and taint rules", 8, flag="concurrent-device-taint-eviction-syncs", key="ConcurrentSyncs", minimum=1
    )
