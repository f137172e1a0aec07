"""Options of the validatingadmissionpolicy-status-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class ValidatingAdmissionPolicyStatusConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "ValidatingAdmissionPolicies", 5, "concurrent-validating-admission-policy-status-syncs", "ConcurrentPolicySyncs"
    )
