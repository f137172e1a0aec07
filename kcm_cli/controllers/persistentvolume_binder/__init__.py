from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="persistentvolume-binder-controller",
    alias="persistentvolume-binder",
    client="persistent-volume-binder",
    source="persistentvolume-controller",
    key="PersistentVolumeBinderController",
    options=PersistentVolumeBinderConfig,
)
