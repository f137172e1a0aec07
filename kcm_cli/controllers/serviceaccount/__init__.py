from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="serviceaccount-controller", alias="serviceaccount", client="service-account-controller")
