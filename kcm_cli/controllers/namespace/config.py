"""Options of the namespace-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import DURATION, INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class NamespaceConfig:
    """Options of the namespace controller."""

    SECTION: ClassVar[str] = "Namespace-controller"
    KEY: ClassVar[str] = "NamespaceController"

    sync_period_s: float = option(
        DURATION,
        300.0,
        flag="namespace-sync-period",
        key="NamespaceSyncPeriod",
        unit="s",
        help="How often every namespace is looked at again, changed or not.",
    )
    concurrent_syncs: int = option(
        INT32,
        10,
        flag="concurrent-namespace-syncs",
        key="ConcurrentNamespaceSyncs",
        help=(
            "How many namespaces are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
