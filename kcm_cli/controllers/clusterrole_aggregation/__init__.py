"""clusterrole-aggregation-controller: see ``controller``."""

from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="clusterrole-aggregation-controller",
    alias="clusterrole-aggregation",
)
