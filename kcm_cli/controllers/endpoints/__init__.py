from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="endpoints-controller",
    alias="endpoint",
    client="endpoint-controller",
    source="endpoint-controller",
    key="EndpointController",
    options=EndpointsConfig,
)
