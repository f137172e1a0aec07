from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="endpointslice-mirroring-controller",
    alias="endpointslicemirroring",
    client="endpointslicemirroring-controller",
    source="endpoint-slice-mirroring-controller",
    key="EndpointSliceMirroringController",
    options=EndpointSliceMirroringConfig,
)
