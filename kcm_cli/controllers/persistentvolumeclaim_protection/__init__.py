from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="persistentvolumeclaim-protection-controller", alias="pvc-protection", client="pvc-protection-controller"
)
