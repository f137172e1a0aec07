from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.config import LegacyTokenCleanerConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="legacy-serviceaccount-token-cleaner-controller",
    alias="legacy-service-account-token-cleaner",
    client="legacy-service-account-token-cleaner",
    key="LegacySATokenCleaner",
    options=LegacyTokenCleanerConfig,
)
