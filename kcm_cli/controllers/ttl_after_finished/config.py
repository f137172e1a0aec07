"""Options of the ttl-after-finished-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class TTLAfterFinishedConfig:
    """Options of the ttl-after-finished controller."""

    SECTION: ClassVar[str] = "Ttl-after-finished-controller"
    KEY: ClassVar[str] = "TTLAfterFinishedController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-ttl-after-finished-syncs",
        key="ConcurrentTTLSyncs",
        help=(
            "How many finished Jobs are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
