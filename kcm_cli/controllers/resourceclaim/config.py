"""Options of the resourceclaim-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class ResourceClaimConfig:
    """Options of the resourceclaim controller."""

    SECTION: ClassVar[str] = "Resourceclaim-controller"
    KEY: ClassVar[str] = "ResourceClaimController"

    concurrent_syncs: int = option(
        INT32,
        50,
        flag="concurrent-resourceclaim-syncs",
        key="ConcurrentSyncs",
        minimum=1,
        help=(
            "How many ResourceClaims and pods are worked on at the same time. More makes the controller "
            "quicker to respond and uses more CPU and network."
        ),
    )
