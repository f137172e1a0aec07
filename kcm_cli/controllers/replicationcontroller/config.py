"""Options of the replicationcontroller-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class ReplicationControllerConfig:
    """Options of the replicationcontroller controller."""

    SECTION: ClassVar[str] = "Replicationcontroller-controller"
    KEY: ClassVar[str] = "ReplicationController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-rc-syncs",
        key="ConcurrentRCSyncs",
        help=(
            "How many ReplicationControllers are worked on at the same time. More makes the controller "
            "quicker to respond and uses more CPU and network."
        ),
    )
