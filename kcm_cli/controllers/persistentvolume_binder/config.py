"""Options of the persistentvolume-binder-controller."""

from kcm_cli.component.options import OptionGroup, duration, group
from kcm_cli.component.volume_config import VolumeConfig


class PersistentVolumeBinderConfig(OptionGroup):
    sync_period_s: float = duration(
        15.0,
        flag="pvclaimbinder-sync-period",
        key="PVClaimBinderSyncPeriod",
        help="How often to sync all volumes and claims, even without changes.",
    )
    volumes: VolumeConfig = group(VolumeConfig, key="VolumeConfiguration")
