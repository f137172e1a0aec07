"""statefulset-controller: see ``controller``."""

from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="statefulset-controller",
    alias="statefulset",
    client="statefulset-controller",
    key="StatefulSetController",
    options=StatefulSetConfig,
)
