"""Options of the validatingadmissionpolicy-status-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ValidatingAdmissionPolicyStatusConfig:
    """Options of the validatingadmissionpolicy-status controller."""

    concurrent_syncs: int = concurrency(
        "ValidatingAdmissionPolicies",
        5,
        flag="concurrent-validating-admission-policy-status-syncs",
        key="ConcurrentPolicySyncs",
    )
