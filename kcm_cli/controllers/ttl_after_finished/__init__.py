from kcm_cli.controllers.ttl_after_finished.config import TTLAfterFinishedConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="ttl-after-finished-controller",
    alias="ttl-after-finished",
    key="TTLAfterFinishedController",
    options=TTLAfterFinishedConfig,
    ends_jobs=True,
)
