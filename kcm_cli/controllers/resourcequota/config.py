"""Options of the resourcequota-controller."""

from kcm_cli.component.options import OptionGroup, concurrency, duration


class ResourceQuotaConfig(OptionGroup):
    sync_period_s: float = duration(
        300.0,
        flag="resource-quota-sync-period",
        key="ResourceQuotaSyncPeriod",
        help="How often to recalculate the usage of every quota.",
    )
    concurrent_syncs: int = concurrency(
        "ResourceQuotas", 5, flag="concurrent-resource-quota-syncs", key="ConcurrentResourceQuotaSyncs"
    )
