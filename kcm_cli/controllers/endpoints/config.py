"""Options of the endpoints-controller."""

from kcm_cli.component.options import OptionGroup, concurrency, duration


class EndpointsConfig(OptionGroup):
    concurrent_syncs: int = concurrency("Services", 5, flag="concurrent-endpoint-syncs", key="ConcurrentEndpointSyncs")
    updates_batch_period_s: float = duration(
        0.0,
        flag="endpoint-updates-batch-period",
        key="EndpointUpdatesBatchPeriod",
        help=(
            "How long to batch changes of pods before Endpoints are written: fewer writes, with more "
            "delay. 0: no batching."
        ),
    )
