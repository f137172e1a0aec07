"""Options of the ephemeral-volume-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class EphemeralVolumeConfig:
    """Options of the ephemeral-volume controller."""

    SECTION: ClassVar[str] = "Ephemeral-volume-controller"
    KEY: ClassVar[str] = "EphemeralVolumeController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-ephemeralvolume-syncs",
        key="ConcurrentEphemeralVolumeSyncs",
        minimum=1,
        help=(
            "How many pods with ephemeral volumes are worked on at the same time. More makes the controller "
            "quicker to respond and uses more CPU and network."
        ),
    )
