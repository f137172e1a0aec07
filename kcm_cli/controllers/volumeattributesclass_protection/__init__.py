from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="volumeattributesclass-protection-controller", gates=("VolumeAttributesClass",))
