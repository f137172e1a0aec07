from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.controllers.node_ipam.config import NodeIPAMConfig
from kcm_cli.controllers.node_ipam.ranges import problems
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="node-ipam-controller",
    alias="nodeipam",
    client="node-controller",
    key="NodeIPAMController",
    options=NodeIPAMConfig,
    running_as="nodeipam",
    node_ranges=True,
    problems=lambda groups: problems(groups[KubeCloudSharedConfig], groups[NodeIPAMConfig]),
)
