"""Options of the namespace-controller."""

from kcm_cli.component.options import OptionGroup, concurrency, duration


class NamespaceConfig(OptionGroup):
    sync_period_s: float = duration(
        300.0,
        flag="namespace-sync-period",
        key="NamespaceSyncPeriod",
        help="How often to sync every namespace, even without changes.",
    )
    concurrent_syncs: int = concurrency(
        "namespaces", 10, flag="concurrent-namespace-syncs", key="ConcurrentNamespaceSyncs"
    )
