"""Options of the endpointslice-mirroring-controller."""

from kcm_cli.component.options import OptionGroup, concurrency, duration, option
from kcm_cli.component.value_types import INT32


class EndpointSliceMirroringConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "Endpoints",
        5,
        flag="mirroring-concurrent-service-endpoint-syncs",
        key="MirroringConcurrentServiceEndpointSyncs",
        minimum=1,
        maximum=50,
    )
    max_endpoints_per_subset: int = option(
        INT32,
        1000,
        flag="mirroring-max-endpoints-per-subset",
        key="MirroringMaxEndpointsPerSubset",
        minimum=1,
        maximum=1000,
        help=("Largest number of endpoints of a subset that are mirrored to EndpointSlices. The others are left out."),
    )
    updates_batch_period_s: float = duration(
        0.0,
        flag="mirroring-endpointslice-updates-batch-period",
        key="MirroringEndpointUpdatesBatchPeriod",
        help=("How long to batch changes of Endpoints before the mirrored EndpointSlices are written. 0: no batching."),
    )
