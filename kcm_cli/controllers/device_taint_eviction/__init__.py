"""device-taint-eviction-controller: see ``controller``."""

from kcm_cli.controllers.device_taint_eviction.config import DeviceTaintEvictionConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="device-taint-eviction-controller",
    gates=("DynamicResourceAllocation", "DRADeviceTaints"),
    options=DeviceTaintEvictionConfig,
)
