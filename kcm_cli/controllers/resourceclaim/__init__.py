from kcm_cli.controllers.resourceclaim.config import ResourceClaimConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="resourceclaim-controller",
    alias="resource-claim-controller",
    client="resource-claim-controller",
    source="resource_claim",
    key="ResourceClaimController",
    options=ResourceClaimConfig,
    gates=("DynamicResourceAllocation",),
    help_after="Device-taint-eviction-controller",
    file_after="DeviceTaintEvictionController",
)
