from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="persistentvolume-expander-controller", alias="persistentvolume-expander", client="expand-controller"
)
