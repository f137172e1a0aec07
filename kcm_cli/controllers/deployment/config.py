"""Options of the deployment-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class DeploymentConfig:
    """Options of the deployment controller."""

    concurrent_syncs: int = concurrency(
        "Deployments", 5, flag="concurrent-deployment-syncs", key="ConcurrentDeploymentSyncs"
    )
