"""Options of the endpointslice-mirroring-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import DURATION, INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class EndpointSliceMirroringConfig:
    """Options of the endpointslice-mirroring controller."""

    SECTION: ClassVar[str] = "Endpointslice-mirroring-controller"
    KEY: ClassVar[str] = "EndpointSliceMirroringController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="mirroring-concurrent-service-endpoint-syncs",
        key="MirroringConcurrentServiceEndpointSyncs",
        minimum=1,
        maximum=50,
        help=(
            "How many Endpoints are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
    max_endpoints_per_subset: int = option(
        INT32,
        1000,
        flag="mirroring-max-endpoints-per-subset",
        key="MirroringMaxEndpointsPerSubset",
        minimum=1,
        maximum=1000,
        help="How many endpoints of one subset are mirrored into EndpointSlices; the rest is left out.",
    )
    updates_batch_period_s: float = option(
        DURATION,
        0.0,
        flag="mirroring-endpointslice-updates-batch-period",
        key="MirroringEndpointUpdatesBatchPeriod",
        unit="s",
        help=(
            "How long changes of Endpoints are gathered before the mirrored EndpointSlices are written. 0 "
            "writes at once."
        ),
    )
