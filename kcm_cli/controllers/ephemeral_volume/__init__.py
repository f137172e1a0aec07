from kcm_cli.controllers.ephemeral_volume.config import EphemeralVolumeConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="ephemeral-volume-controller", alias="ephemeral-volume", options=EphemeralVolumeConfig)
