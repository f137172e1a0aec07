"""MutatingAdmissionPolicyBinding.

upstream: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/mutatingadmissionpolicybinding/strategy.go, pkg/printers/internalversion/printers.go
"""

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import validate_binding, validate_mutated
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import POLICY_BINDING
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import by_spec
from kcm_cli.sandbox.apiserver.validation import rules

_BINDING = rules.fields(validate_binding, rules.optional("matchResources", validate_mutated))


KIND = Kind(
    "admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings",
    defaults=common.admission_policy_binding,
    strategy=replace(common.POLICY_STRATEGY, check=by_spec(_BINDING)),
    table=POLICY_BINDING,
)
