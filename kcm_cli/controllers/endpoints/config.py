"""Options of the endpoints-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import DURATION, INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class EndpointsConfig:
    """Options of the endpoints controller."""

    SECTION: ClassVar[str] = "Endpoints-controller"
    KEY: ClassVar[str] = "EndpointController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-endpoint-syncs",
        key="ConcurrentEndpointSyncs",
        help=(
            "How many Services are worked on at the same time. More makes the controller quicker to respond "
            "and uses more CPU and network."
        ),
    )
    updates_batch_period_s: float = option(
        DURATION,
        0.0,
        flag="endpoint-updates-batch-period",
        key="EndpointUpdatesBatchPeriod",
        unit="s",
        help=(
            "How long changes of pods are gathered before the Endpoints are written: fewer writes, later "
            "changes. 0 writes at once."
        ),
    )
