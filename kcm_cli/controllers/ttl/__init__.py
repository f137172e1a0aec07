from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="ttl-controller", alias="ttl")
