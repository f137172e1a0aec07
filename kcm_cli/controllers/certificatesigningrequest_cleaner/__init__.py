from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="certificatesigningrequest-cleaner-controller", alias="csrcleaner", client="certificate-controller"
)
