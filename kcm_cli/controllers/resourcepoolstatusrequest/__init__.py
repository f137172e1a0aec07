from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="resourcepoolstatusrequest-controller", gates=("DRAResourcePoolStatus",))
