from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="persistentvolume-attach-detach-controller",
    alias="attachdetach",
    client="attachdetach-controller",
    key="AttachDetachController",
    options=AttachDetachConfig,
)
