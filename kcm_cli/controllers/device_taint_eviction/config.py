"""Options of the device-taint-eviction-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class DeviceTaintEvictionConfig:
    """Options of the device-taint-eviction controller."""

    SECTION: ClassVar[str] = "Device-taint-eviction-controller"
    KEY: ClassVar[str] = "DeviceTaintEvictionController"

    concurrent_syncs: int = option(
        INT32,
        8,
        flag="concurrent-device-taint-eviction-syncs",
        key="ConcurrentSyncs",
        minimum=1,
        help=(
            "How many evictions and taint rules are worked on at the same time. More makes the controller "
            "quicker to respond and uses more CPU and network."
        ),
    )
