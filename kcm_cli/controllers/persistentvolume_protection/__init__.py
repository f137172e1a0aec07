from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="persistentvolume-protection-controller", alias="pv-protection", client="pv-protection-controller"
)
