"""Options of the deployment-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class DeploymentConfig(OptionGroup):
    concurrent_syncs: int = concurrency("Deployments", 5, "concurrent-deployment-syncs", "ConcurrentDeploymentSyncs")
