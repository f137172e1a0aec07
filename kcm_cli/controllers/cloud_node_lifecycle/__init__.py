"""cloud-node-lifecycle-controller: only cloud controller managers run it."""

from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="cloud-node-lifecycle-controller", alias="cloud-node-lifecycle", cloud_only=True)
