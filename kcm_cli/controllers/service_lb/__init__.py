"""service-lb-controller: see ``controller``."""

from kcm_cli.controllers.service_lb.config import ServiceConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="service-lb-controller",
    alias="service",
    cloud_only=True,
    key="ServiceController",
    options=ServiceConfig,
)
