from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="replicationcontroller-controller",
    alias="replicationcontroller",
    client="replication-controller",
    source="replication-controller",
    key="ReplicationController",
    options=ReplicationControllerConfig,
)
