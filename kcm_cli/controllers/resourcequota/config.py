"""Options of the resourcequota-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import DURATION, INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class ResourceQuotaConfig:
    """Options of the resourcequota controller."""

    SECTION: ClassVar[str] = "Resourcequota-controller"
    KEY: ClassVar[str] = "ResourceQuotaController"

    sync_period_s: float = option(
        DURATION,
        300.0,
        flag="resource-quota-sync-period",
        key="ResourceQuotaSyncPeriod",
        unit="s",
        help="How often the use of every quota is counted anew.",
    )
    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-resource-quota-syncs",
        key="ConcurrentResourceQuotaSyncs",
        help=(
            "How many ResourceQuotas are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
