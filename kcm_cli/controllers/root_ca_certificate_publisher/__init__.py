from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="root-ca-certificate-publisher-controller", alias="root-ca-cert-publisher", client="root-ca-cert-publisher"
)
