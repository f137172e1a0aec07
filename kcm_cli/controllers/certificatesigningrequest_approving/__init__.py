from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="certificatesigningrequest-approving-controller", alias="csrapproving", client="certificate-controller"
)
