"""Options of the ephemeral-volume-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class EphemeralVolumeConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "pods with ephemeral volumes",
        5,
        "concurrent-ephemeralvolume-syncs",
        "ConcurrentEphemeralVolumeSyncs",
        minimum=1,
    )
