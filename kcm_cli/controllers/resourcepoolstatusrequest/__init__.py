"""resourcepoolstatusrequest-controller: see ``controller``."""

from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="resourcepoolstatusrequest-controller",
    client="resourcepoolstatusrequest-controller",
    gates=("DRAResourcePoolStatus",),
)
