from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="podgroup-protection-controller", gates=("GenericWorkload",))
