"""Options of the ephemeral-volume-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class EphemeralVolumeConfig:
    """Options of the ephemeral-volume controller."""

    concurrent_syncs: int = concurrency(
        "pods with ephemeral volumes",
        5,
        flag="concurrent-ephemeralvolume-syncs",
        key="ConcurrentEphemeralVolumeSyncs",
        minimum=1,
    )
