"""Options of the namespace-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency, duration


@dataclass(frozen=True)
class NamespaceConfig:
    sync_period_s: float = duration(
        300.0,
        flag="namespace-sync-period",
        key="NamespaceSyncPeriod",
        help="How often to sync every namespace, even without changes.",
    )
    concurrent_syncs: int = concurrency(
        "namespaces", 10, flag="concurrent-namespace-syncs", key="ConcurrentNamespaceSyncs"
    )
