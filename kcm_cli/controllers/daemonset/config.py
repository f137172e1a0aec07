"""Options of the daemonset-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class DaemonSetConfig:
    """Options of the daemonset controller."""

    SECTION: ClassVar[str] = "Daemonset-controller"
    KEY: ClassVar[str] = "DaemonSetController"

    concurrent_syncs: int = option(
        INT32,
        2,
        flag="concurrent-daemonset-syncs",
        key="ConcurrentDaemonSetSyncs",
        minimum=1,
        help=(
            "How many DaemonSets are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
