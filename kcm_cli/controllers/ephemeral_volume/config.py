"""Options of the ephemeral-volume-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class EphemeralVolumeConfig:
    concurrent_syncs: int = concurrency(
        "pods with ephemeral volumes",
        5,
        "concurrent-ephemeralvolume-syncs",
        "ConcurrentEphemeralVolumeSyncs",
        minimum=1,
    )
