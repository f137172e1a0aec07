"""serviceaccount-token-controller: see ``controller``."""

from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="serviceaccount-token-controller",
    alias="serviceaccount-token",
    client="tokens-controller",
    starts_first=True,
    key="SAController",
    options=ServiceAccountTokenConfig,
)
