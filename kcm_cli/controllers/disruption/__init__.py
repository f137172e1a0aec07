from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="disruption-controller", alias="disruption", source="controllermanager")
