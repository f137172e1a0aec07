from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="serviceaccount-token-controller",
    alias="serviceaccount-token",
    client="tokens-controller",
    key="SAController",
    options=ServiceAccountTokenConfig,
    starts_first=True,
)
