from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="daemonset-controller",
    alias="daemonset",
    client="daemon-set-controller",
    key="DaemonSetController",
    options=DaemonSetConfig,
    help_after="Statefulset-controller",
)
