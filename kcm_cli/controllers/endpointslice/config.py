"""Options of the endpointslice-controller."""

from kcm_cli.component.options import OptionGroup, concurrency, duration, option
from kcm_cli.component.value_types import INT32


class EndpointSliceConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "Services",
        5,
        flag="concurrent-service-endpoint-syncs",
        key="ConcurrentServiceEndpointSyncs",
        minimum=1,
        maximum=50,
    )
    max_endpoints_per_slice: int = option(
        INT32,
        100,
        flag="max-endpoints-per-slice",
        key="MaxEndpointsPerSlice",
        minimum=1,
        maximum=1000,
        help=(
            "Largest number of endpoints in an EndpointSlice. Larger slices are fewer, but each change sends more data."
        ),
    )
    updates_batch_period_s: float = duration(
        0.0,
        flag="endpointslice-updates-batch-period",
        key="EndpointUpdatesBatchPeriod",
        help=(
            "How long to batch changes of pods before EndpointSlices are written: fewer writes, with "
            "more delay. 0: no batching."
        ),
    )
