from kcm_cli.controllers.certificatesigningrequest_signing.config import CSRSigningConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="certificatesigningrequest-signing-controller",
    alias="csrsigning",
    client="certificate-controller",
    key="CSRSigningController",
    options=CSRSigningConfig,
)
