"""Options of the validatingadmissionpolicy-status-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ValidatingAdmissionPolicyStatusConfig:
    concurrent_syncs: int = concurrency(
        "ValidatingAdmissionPolicies", 5, "concurrent-validating-admission-policy-status-syncs", "ConcurrentPolicySyncs"
    )
