"""service-lb-controller: only cloud controller managers run it."""

from kcm_cli.component.options import OptionGroup, concurrency
from kcm_cli.engine.descriptor import Descriptor


class ServiceConfig(OptionGroup):
    """Its options, which have no effect."""

    concurrent_syncs: int = concurrency("Services", 1, "concurrent-service-syncs", "ConcurrentServiceSyncs")


DESCRIPTOR = Descriptor(
    name="service-lb-controller",
    alias="service",
    key="ServiceController",
    options=ServiceConfig,
    cloud_only=True,
    help_after="Generic",
)
