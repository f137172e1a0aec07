"""Options of the replicaset-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class ReplicaSetConfig:
    """Options of the replicaset controller."""

    SECTION: ClassVar[str] = "Replicaset-controller"
    KEY: ClassVar[str] = "ReplicaSetController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-replicaset-syncs",
        key="ConcurrentRSSyncs",
        help=(
            "How many ReplicaSets are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
