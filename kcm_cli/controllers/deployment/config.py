"""Options of the deployment-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class DeploymentConfig:
    concurrent_syncs: int = concurrency("Deployments", 5, "concurrent-deployment-syncs", "ConcurrentDeploymentSyncs")
