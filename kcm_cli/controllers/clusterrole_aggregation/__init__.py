from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="clusterrole-aggregation-controller", alias="clusterrole-aggregation")
