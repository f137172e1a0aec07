from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="service-cidr-controller", client="service-cidrs-controller", gates=("MultiCIDRServiceAllocator",)
)
