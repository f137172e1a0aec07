"""Options of the device-taint-eviction-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class DeviceTaintEvictionConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "evictions and taint rules", 8, "concurrent-device-taint-eviction-syncs", "ConcurrentSyncs", minimum=1
    )
