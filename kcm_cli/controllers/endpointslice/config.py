"""Options of the endpointslice-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import DURATION, INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class EndpointSliceConfig:
    """Options of the endpointslice controller."""

    SECTION: ClassVar[str] = "Endpointslice-controller"
    KEY: ClassVar[str] = "EndpointSliceController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-service-endpoint-syncs",
        key="ConcurrentServiceEndpointSyncs",
        minimum=1,
        maximum=50,
        help=(
            "How many Services are worked on at the same time. More makes the controller quicker to respond "
            "and uses more CPU and network."
        ),
    )
    max_endpoints_per_slice: int = option(
        INT32,
        100,
        flag="max-endpoints-per-slice",
        key="MaxEndpointsPerSlice",
        minimum=1,
        maximum=1000,
        help=(
            "How many endpoints one EndpointSlice holds at most. Larger slices are fewer, but each change sends more."
        ),
    )
    updates_batch_period_s: float = option(
        DURATION,
        0.0,
        flag="endpointslice-updates-batch-period",
        key="EndpointUpdatesBatchPeriod",
        unit="s",
        help=(
            "How long changes of pods are gathered before the EndpointSlices are written: fewer writes, "
            "later changes. 0 writes at once."
        ),
    )
