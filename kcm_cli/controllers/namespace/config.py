"""Options of the namespace-controller."""

from dataclasses import dataclass

from kcm_cli.component.kinds import DURATION
from kcm_cli.component.options import concurrency, option


@dataclass(frozen=True, slots=True)
class NamespaceConfig:
    """Options of the namespace controller."""

    sync_period_s: float = option(
        DURATION,
        300.0,
        flag="namespace-sync-period",
        key="NamespaceSyncPeriod",
        unit="s",
        help="How often every namespace is looked at again, changed or not.",
    )
    concurrent_syncs: int = concurrency(
        "namespaces", 10, flag="concurrent-namespace-syncs", key="ConcurrentNamespaceSyncs"
    )
