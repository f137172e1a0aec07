from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="taint-eviction-controller", client="node-controller", gates=("SeparateTaintEvictionController",)
)
