from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="endpointslice-controller",
    alias="endpointslice",
    source="endpoint-slice-controller",
    key="EndpointSliceController",
    options=EndpointSliceConfig,
)
