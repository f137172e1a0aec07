"""Options of the service-lb-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """Options of the service-lb controller, which only cloud controller managers run."""

    SECTION: ClassVar[str] = "Service-lb-controller"
    KEY: ClassVar[str] = "ServiceController"

    concurrent_syncs: int = option(
        INT32,
        1,
        flag="concurrent-service-syncs",
        key="ConcurrentServiceSyncs",
        help=(
            "How many Services are worked on at the same time. More makes the controller quicker to respond "
            "and uses more CPU and network."
        ),
    )
