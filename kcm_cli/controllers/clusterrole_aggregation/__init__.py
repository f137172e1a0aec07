"""clusterrole-aggregation-controller: how it is registered."""

from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="clusterrole-aggregation-controller", alias="clusterrole-aggregation")
