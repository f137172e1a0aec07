from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="selinux-warning-controller", gates=("SELinuxChangePolicy",), default_enabled=False)
