from kcm_cli.controllers.validatingadmissionpolicy_status.config import ValidatingAdmissionPolicyStatusConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="validatingadmissionpolicy-status-controller",
    key="ValidatingAdmissionPolicyStatusController",
    options=ValidatingAdmissionPolicyStatusConfig,
)
