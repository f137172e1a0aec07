"""ValidatingAdmissionPolicyBinding.

upstream: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/validatingadmissionpolicybinding/strategy.go,
pkg/printers/internalversion/printers.go
"""

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import validate_binding
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import POLICY_BINDING
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import by_spec
from kcm_cli.sandbox.apiserver.validation import rules

_SPEC = "admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec"
_ACTIONS = rules.items(rules.enum(*rules.choices(_SPEC, "validationActions")), key="")
_DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
    "and headers serves no purpose)"
)
_not_both = rules.must(lambda actions: not {"Deny", "Warn"} <= set(actions), _DENY_AND_WARN)
_BINDING = rules.fields(
    validate_binding,
    rules.required("validationActions", _ACTIONS, _not_both, detail="at least one validation action is required"),
)


KIND = Kind(
    "admissionregistration.k8s.io",
    "validatingadmissionpolicybindings",
    defaults=common.admission_policy_binding,
    strategy=replace(common.POLICY_STRATEGY, check=by_spec(_BINDING)),
    table=POLICY_BINDING,
)
