"""Options of the statefulset-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class StatefulSetConfig:
    """Options of the statefulset controller."""

    SECTION: ClassVar[str] = "Statefulset-controller"
    KEY: ClassVar[str] = "StatefulSetController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-statefulset-syncs",
        key="ConcurrentStatefulSetSyncs",
        minimum=1,
        help=(
            "How many StatefulSets are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
