from kcm_cli.controllers.resourcequota.config import ResourceQuotaConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="resourcequota-controller", alias="resourcequota", key="ResourceQuotaController", options=ResourceQuotaConfig
)
