"""Options of the service-lb-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ServiceConfig:
    """Options of the service-lb controller, which only cloud controller managers run."""

    concurrent_syncs: int = concurrency("Services", 1, flag="concurrent-service-syncs", key="ConcurrentServiceSyncs")
