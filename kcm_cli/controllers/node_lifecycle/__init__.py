from kcm_cli.controllers.node_lifecycle.config import NodeLifecycleConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="node-lifecycle-controller",
    alias="nodelifecycle",
    client="node-controller",
    source="node-controller",
    options=NodeLifecycleConfig,
)
