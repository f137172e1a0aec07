"""Options of the deployment-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class DeploymentConfig:
    """Options of the deployment controller."""

    SECTION: ClassVar[str] = "Deployment-controller"
    KEY: ClassVar[str] = "DeploymentController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-deployment-syncs",
        key="ConcurrentDeploymentSyncs",
        help=(
            "How many Deployments are worked on at the same time. More makes the controller quicker to "
            "respond and uses more CPU and network."
        ),
    )
