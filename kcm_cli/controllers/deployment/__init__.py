from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="deployment-controller", alias="deployment", options=DeploymentConfig)
