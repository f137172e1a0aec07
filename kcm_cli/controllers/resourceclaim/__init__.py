"""resourceclaim-controller: see ``controller``."""

from kcm_cli.controllers.resourceclaim.config import ResourceClaimConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="resourceclaim-controller",
    alias="resource-claim-controller",
    client="resource-claim-controller",
    source="resource_claim",
    gates=("DynamicResourceAllocation",),
    key="ResourceClaimController",
    options=ResourceClaimConfig,
)
