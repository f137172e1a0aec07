from kcm_cli.controllers.device_taint_eviction.config import DeviceTaintEvictionConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="device-taint-eviction-controller",
    options=DeviceTaintEvictionConfig,
    gates=("DynamicResourceAllocation", "DRADeviceTaints"),
    file_after="ValidatingAdmissionPolicyStatusController",
)
