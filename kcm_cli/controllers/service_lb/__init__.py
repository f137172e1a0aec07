"""service-lb-controller: only cloud controller managers run it."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency
from kcm_cli.engine.descriptor import Descriptor


@dataclass(frozen=True)
class ServiceConfig:
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
