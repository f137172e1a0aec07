from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="replicaset-controller", alias="replicaset", key="ReplicaSetController", options=ReplicaSetConfig
)
