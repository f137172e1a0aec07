from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="statefulset-controller",
    alias="statefulset",
    key="StatefulSetController",
    options=StatefulSetConfig,
    help_after="Resourceclaim-controller",
    file_after="DeploymentController",
)
