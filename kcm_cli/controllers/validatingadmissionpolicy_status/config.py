"""Options of the validatingadmissionpolicy-status-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class ValidatingAdmissionPolicyStatusConfig:
    """Options of the validatingadmissionpolicy-status controller."""

    SECTION: ClassVar[str] = "Validatingadmissionpolicy-status-controller"
    KEY: ClassVar[str] = "ValidatingAdmissionPolicyStatusController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-validating-admission-policy-status-syncs",
        key="ConcurrentPolicySyncs",
        minimum=1,
        help=(
            "How many ValidatingAdmissionPolicies are worked on at the same time. More makes the controller "
            "quicker to respond and uses more CPU and network."
        ),
    )
